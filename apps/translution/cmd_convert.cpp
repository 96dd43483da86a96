#include <fmt/format.h>

#include "commands.h"
#include "model_flags.h"
#include "table.h"
#include "translution/core/error.h"
#include "translution/models/cost.h"
#include "translution/train/model_file.h"
#include "translution/weights/convert.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kConvertExamples =
    "At least one of --from and --to names a format other than translution. All files are\n"
    "safetensors; `python -m translution.convert` also reads .pt files.\n"
    "\n"
    "--from authors needs --model, preferably with the authors' name: lor_qkv_tiny/56, or\n"
    "lor_kv_tiny-256 for text. The sizes of GPT-2 and of timm's models are read from IN.\n"
    "A converted file stores the options of its model. eval, predict and generate accept it as "
    "RUN.\n"
    "\n"
    "Examples:\n"
    "  translution convert theirs.safetensors ours.safetensors --from authors \\\n"
    "                      --model lor_qkv_tiny/56 --relative-dim 8\n"
    "  translution convert ours.safetensors theirs.safetensors --to authors\n"
    "  translution convert gpt2/model.safetensors gpt2.safetensors --from gpt2\n"
    "  translution convert vit.safetensors ours.safetensors --from timm";

struct ConvertFlags {
  explicit ConvertFlags(Command command) : settings(command) {
    command.argument("IN", in, "safetensors file to read");
    command.argument("OUT", out, "safetensors file to write");
    const auto from =
        settings.add("from", "FORMAT",
                     "format of IN: translution, authors, gpt2 or timm (translution)", "Formats");
    const auto to = settings.add("to", "FORMAT",
                                 "format of OUT: translution or authors (translution)", "Formats");
    command.require_one_of({from, to});
    add_model_flags(settings, "the model that IN stores");
  }

  SettingFlags settings;
  std::string in, out;
};

using Texts = std::map<std::string, std::string>;

// The value of --from or --to, which is removed from `given`: the rest are settings of the model.
WeightFormat take_format(Texts& given, const char* name) {
  const auto found = given.find(name);
  if (found == given.end()) return WeightFormat::translution;
  const auto format = parse_name(name, kWeightFormats, found->second);
  given.erase(found);
  return format;
}

ConvertedModel read_in(const std::string& path, WeightFormat from, const Texts& settings) {
  if (from == WeightFormat::translution && settings.empty())
    return load_described(path, "name it with --model");
  const auto tensors =
      from == WeightFormat::translution ? load_model(path) : load_safetensors(path).tensors;
  return convert_weights(from, settings, tensors, path, "--");
}

void run_convert(const ConvertFlags& flags) {
  auto settings = flags.settings.given();
  const auto from = take_format(settings, "from"), to = take_format(settings, "to");
  require(to == WeightFormat::translution || to == WeightFormat::authors,
          "--to: expected translution or authors, got ", name_of(kWeightFormats, to));
  require(from != to, "--from and --to are both ", name_of(kWeightFormats, to),
          "; expected another format for IN or OUT, as in --from authors or --to authors");
  const auto model = read_in(flags.in, from, settings);
  if (to == WeightFormat::authors)
    save_safetensors(flags.out, in_authors_format(model, settings["model"], flags.in));
  else
    save_described(flags.out, model);
  fmt::print("{}: {} with {}, {} parameters\n", flags.out, model.options.name(),
             name_of(kMethods, model.options.position.method),
             grouped(model_cost(model.options).parameters));
}

}  // namespace

void add_convert(Command program) {
  auto command = program.add_command("convert", "Convert weights from and to other formats");
  const auto flags = std::make_shared<ConvertFlags>(command);
  command.footer(kConvertExamples);
  command.run([flags] { run_convert(*flags); });
}

}  // namespace translution::cli
