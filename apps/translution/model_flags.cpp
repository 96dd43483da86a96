#include "model_flags.h"

#include <charconv>
#include <optional>

#include "translution/core/error.h"

namespace translution::cli {
namespace {

constexpr Named<bool> kSwitch[] = {{true, "on", ""}, {false, "off", ""}};

// An option of the command line and what it changes in a model.
struct Flag {
  const char* name;
  std::string wants, help;
  void (*set)(ModelOptions&, const Value&);
};

struct FlagGroup {
  const char* title;
  std::optional<Family> family;  // absent: for all models
  std::vector<Flag> flags;
};

using FlagGroups = std::vector<FlagGroup>;

template <typename Choice, size_t count>
std::string choices(const Named<Choice> (&table)[count]) {
  std::string text;
  for (const auto& name : names_of(table)) text += (text.empty() ? "" : "|") + name;
  return text;
}

std::optional<int64_t> to_number(const std::string& text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// "84x60" as 84, 60; nothing where that is not all there is.
std::optional<std::vector<int64_t>> to_numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (size_t begin = 0, cross = 0; cross != std::string::npos; begin = cross + 1) {
    cross = text.find('x', begin);
    const auto number = to_number(text.substr(begin, cross - begin));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

const ModelOptions& defaults() {
  static const ModelOptions options;
  return options;
}

FlagGroup input_flags() {
  return {"Model",
          std::nullopt,
          {
              {"--input-embedding", choices(kSwitch),
               "a vector per place added to the input (as the method has it)",
               [](ModelOptions& o, const Value& v) { o.input_embedding = v.on(); }},
          }};
}

FlagGroup image_flags() {
  const auto& d = defaults();
  return {
      "Images (vit)",
      Family::vit,
      {
          {"--image-size", "N|HxW", join("pixels, as in 84 or 84x60 (", times(d.image_size), ")"),
           [](ModelOptions& o, const Value& v) { o.image_size = v.sides(); }},
          {"--channels", "N", join("colours of a pixel (", d.channels, ")"),
           [](ModelOptions& o, const Value& v) { o.channels = v.number(); }},
          {"--classes", "N", join("what the images are sorted into (", d.classes, ")"),
           [](ModelOptions& o, const Value& v) { o.classes = v.number(); }},
          {"--pooling", choices(kPoolings), "read a class token, or average the patches (cls)",
           [](ModelOptions& o, const Value& v) {
             o.pooling = parse_name("pooling", kPoolings, v.text);
           }},
      }};
}

FlagGroup text_flags() {
  return {"Text (gpt)",
          Family::gpt,
          {
              {"--vocabulary", "N", join("distinct tokens (", defaults().vocabulary, ")"),
               [](ModelOptions& o, const Value& v) { o.vocabulary = v.number(); }},
          }};
}

FlagGroup position_flags() {
  const Position& d = defaults().position;
  return {
      "Position",
      std::nullopt,
      {
          {"--method", "NAME", "where position enters; see `translution list` (translution)",
           [](ModelOptions& o, const Value& v) {
             o.position.method = parse_name("method", kMethods, v.text);
           }},
          {"--roles", "qkv", "which of q, k, v have a matrix per offset, or none (qkv)",
           [](ModelOptions& o, const Value& v) { o.position.roles = Roles::parse(v.text); }},
          {"--encoding", choices(kEncodings), "a matrix per offset or per token pair (relative)",
           [](ModelOptions& o, const Value& v) {
             o.position.encoding = parse_name("encoding", kEncodings, v.text);
           }},
          {"--sharing", choices(kSharings), "how offsets beyond the radius are joined (none)",
           [](ModelOptions& o, const Value& v) {
             o.position.sharing = parse_name("sharing", kSharings, v.text);
           }},
          {"--radius", "N", join("of the sharing (", d.radius, ")"),
           [](ModelOptions& o, const Value& v) { o.position.radius = v.number(); }},
          {"--rotary", choices(kSwitch), "rotate queries and keys that are not relative (off)",
           [](ModelOptions& o, const Value& v) { o.position.rotary = v.on(); }},
          {"--kernel-size", "N", join("side of a convolution's window (", d.kernel_size, ")"),
           [](ModelOptions& o, const Value& v) { o.position.kernel_size = v.number(); }},
      }};
}

FlagGroup alpha_flags() {
  return {"Alpha-Translution",
          std::nullopt,
          {
              {"--relative-dim", "N",
               join("relative channels per head (", defaults().position.relative_dim, ")"),
               [](ModelOptions& o, const Value& v) { o.position.relative_dim = v.number(); }},
              {"--shared-qkv", choices(kSwitch), "W^q, W^k, W^v for all offsets beside them (on)",
               [](ModelOptions& o, const Value& v) { o.position.shared_qkv = v.on(); }},
              {"--mixing", choices(kMixings), "how the two parts are joined (sum)",
               [](ModelOptions& o, const Value& v) {
                 o.position.mixing = parse_name("mixing", kMixings, v.text);
               }},
          }};
}

FlagGroup hybrid_flags() {
  return {"Hybrids",
          std::nullopt,
          {
              {"--hybrid-layers", "K", "only the first K layers use the method (all)",
               [](ModelOptions& o, const Value& v) { o.hybrid_layers = v.number(); }},
              {"--rest", "NAME",
               join("method of the other layers (", name_of(kMethods, defaults().rest), ")"),
               [](ModelOptions& o, const Value& v) {
                 o.rest = parse_name("method", kMethods, v.text);
               }},
          }};
}

const FlagGroups& position_groups() {
  static const FlagGroups groups = {position_flags(), alpha_flags()};
  return groups;
}

const FlagGroups& model_groups() {
  static const FlagGroups groups = {input_flags(),  position_flags(), alpha_flags(),
                                    hybrid_flags(), image_flags(),    text_flags()};
  return groups;
}

std::vector<const CLI::Option*> add(const FlagGroups& groups, CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const auto& group : groups)
    for (const auto& flag : group.flags)
      options.push_back(command.add_option(flag.name)
                            ->type_name(flag.wants)
                            ->description(flag.help)
                            ->group(group.title));
  return options;
}

// `options` are those that `add` gave for the groups.
void read(const FlagGroups& groups, const std::vector<const CLI::Option*>& options,
          ModelOptions& model) {
  auto option = options.begin();
  for (const auto& group : groups)
    for (const auto& flag : group.flags) {
      const auto* given = *option++;
      if (given->count() == 0) continue;
      require(group.family.value_or(model.family) == model.family, flag.name, " is not for ",
              model.name(), "; it belongs to ", group.title);
      flag.set(model, Value(*given));
    }
}

}  // namespace

Value::Value(const CLI::Option& given) : option(given.get_name()), text(given.results().front()) {
  require(text.rfind("--", 0) != 0, option, " wants a value, got the option ", text);
}

int64_t Value::number() const {
  const auto number = to_number(text);
  require(number.has_value(), option, " wants a whole number, got '", text, "'");
  return *number;
}

int64_t Value::number(int64_t least, int64_t most) const {
  const int64_t value = number();
  require(least <= value && value <= most, option, " wants ", least, " to ", most, ", got ", value);
  return value;
}

bool Value::on() const { return parse_name((option + " value").c_str(), kSwitch, text); }

std::vector<int64_t> Value::sides() const {
  const auto sides = to_numbers(text);
  require(sides && sides->size() <= 2, option, " wants pixels such as 84 or 84x60, got '", text,
          "'");
  return {sides->front(), sides->back()};
}

std::vector<int64_t> Value::grid() const {
  const auto sides = to_numbers(text);
  require(sides.has_value(), option, " wants sides such as 160, 7x7 or 4x7x7, got '", text, "'");
  return *sides;
}

int64_t number_or(int64_t fallback, const CLI::Option& option, int64_t most) {
  return option.count() > 0 ? Value(option).number(1, most) : fallback;
}

PositionFlags::PositionFlags(CLI::App& command) : options_(add(position_groups(), command)) {}

Position PositionFlags::read() const {
  ModelOptions model;
  cli::read(position_groups(), options_, model);
  return model.position;
}

ModelFlags::ModelFlags(CLI::App& command)
    : model_(command.add_option("--model")
                 ->type_name("NAME")
                 ->description("with patch size or length: vit-a/12, gpt-a-160")
                 ->group("Model")),
      options_(add(model_groups(), command)) {}

ModelOptions ModelFlags::read() const {
  require(model_->count() > 0, "--model is missing; wanted a name such as vit-a/12 or gpt-a-160");
  auto model = ModelOptions::named(Value(*model_).text);
  cli::read(model_groups(), options_, model);
  model.check();
  return model;
}

std::vector<std::string> ModelFlags::given() const {
  std::vector<std::string> names;
  if (model_->count() > 0) names.push_back(model_->get_name());
  for (const auto* option : options_)
    if (option->count() > 0) names.push_back(option->get_name());
  return names;
}

}  // namespace translution::cli
