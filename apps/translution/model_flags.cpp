#include "model_flags.h"

#include "translution/core/error.h"

namespace translution::cli {

using namespace detail;

SettingValue value_of(const Option& option) {
  const SettingValue value{option.name(), option.text()};
  require(value.text.rfind("--", 0) != 0, value.name, ": expected a value, got the option ",
          value.text);
  return value;
}

int64_t number_or(int64_t fallback, const Option& option, int64_t most) {
  return option.given() ? value_of(option).number(1, most) : fallback;
}

Option SettingFlags::add(const std::string& name, const std::string& placeholder,
                         const std::string& help, const char* group) {
  options_.emplace_back(name, command_.option("--" + name, placeholder, help, group));
  return options_.back().second;
}

std::map<std::string, std::string> SettingFlags::given() const {
  std::map<std::string, std::string> texts;
  for (const auto& [name, option] : options_)
    if (option.given()) texts[name] = value_of(option).text;
  return texts;
}

std::vector<std::string> SettingFlags::names() const {
  std::vector<std::string> names;
  for (const auto& [name, option] : options_) names.push_back(name);
  return names;
}

PrecisionFlag::PrecisionFlag(Command command, const char* fallback)
    : option_(command.option("--precision", choices_text(kPrecisions),
                             join("precision of matrix products (", fallback, ")"))) {}

std::optional<Precision> PrecisionFlag::read() const {
  if (!option_.given()) return std::nullopt;
  return value_of(option_).one_of(kPrecisions);
}

DeviceFlag::DeviceFlag(Command command)
    : option_(command.option("--device", "NAME",
                             "device to compute on: cpu, cuda, cuda:N or mps (cpu)")) {}

std::string DeviceFlag::read() const { return option_.given() ? value_of(option_).text : "cpu"; }

PositionFlags::PositionFlags(Command command) : flags_(command) { flags_.add(position_settings()); }

Position PositionFlags::read() const {
  Position position;
  set_all(position_settings(), flags_.given(), position, "--");
  return position;
}

Option add_model_flags(SettingFlags& flags, const char* fallback,
                       const Settings<ModelOptions>& settings) {
  const std::string help =
      "architecture with patch size or length, as in vit-a/12 or gpt-a-160, or for points as in "
      "cloud-a, or the authors' name, as in lor_qkv_tiny/56; see `translution list`";
  const auto model = flags.add(
      "model", "NAME", fallback == nullptr ? help : join(help, " (", fallback, ")"), "Model");
  flags.add(settings);
  return model;
}

ModelFlags::ModelFlags(Command command) : flags_(command), model_(add_model_flags(flags_)) {}

ModelOptions ModelFlags::read() const { return read_model(flags_.given(), "--"); }

std::vector<std::string> ModelFlags::given() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : flags_.given()) names.push_back("--" + name);
  return names;
}

}  // namespace translution::cli
