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
    "Files are safetensors; a .pt is read by `python -m translution.convert`. The authors'\n"
    "weights need the model named, best by their name: lor_qkv_tiny/56, or lor_kv_tiny-256 for\n"
    "text. GPT-2 and timm's models tell their sizes themselves. A converted file knows its model:\n"
    "eval, predict and generate take it in place of a run.\n"
    "\n"
    "Examples:\n"
    "  translution convert theirs.safetensors ours.safetensors --from authors \\\n"
    "                      --model lor_qkv_tiny/56 --relative-dim 8\n"
    "  translution convert ours.safetensors theirs.safetensors --to authors\n"
    "  translution convert gpt2/model.safetensors gpt2.safetensors --from gpt2\n"
    "  translution convert vit.safetensors ours.safetensors --from timm";

struct ConvertFlags {
  explicit ConvertFlags(Command command) : settings(command) {
    command.argument("IN", in, "weights to read");
    command.argument("OUT", out, "safetensors file to write");
    settings.add("from", choices_text(kWeightFormats), "format of IN (translution)", "Formats");
    settings.add("to", "translution|authors", "format of OUT (translution)", "Formats");
    add_model_flags(settings);
  }

  SettingFlags settings;
  std::string in, out;
};

using Texts = std::map<std::string, std::string>;

// What stands behind --from or --to, taken out of the settings of the model.
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
          "; say which of IN and OUT is not: --from authors, --to authors");
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
  auto command = program.add_command("convert", "Weights from and to other code");
  const auto flags = std::make_shared<ConvertFlags>(command);
  command.footer(kConvertExamples);
  command.run([flags] { run_convert(*flags); });
}

}  // namespace translution::cli
