#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "json_text.h"
#include "model_flags.h"
#include "print_line.h"
#include "progress.h"
#include "table.h"
#include "threads.h"
#include "translution/core/cpu_info.h"
#include "translution/data/settings.h"
#include "translution/models/memory_check.h"
#include "translution/train/data_fit.h"
#include "translution/train/device.h"
#include "translution/train/evaluate.h"
#include "translution/train/trained.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr int64_t kBatch = 256;
constexpr const char* kEvalExamples =
    "Prints loss and accuracy (classes), the mean absolute error (numbers) or perplexity (text) "
    "on\n"
    "every evaluation set. The data are those of the run unless --data names others.\n"
    "\n"
    "Examples:\n"
    "  translution eval runs/alpha\n"
    "  translution eval runs/alpha/checkpoints/best --eval-on dynamic --json\n"
    "  translution eval runs/alpha --data mnist:data/mnist";

struct EvalFlags {
  explicit EvalFlags(Command command)
      : settings(command), precision(command, "the run's"), device(command) {
    command.argument("RUN", path, "run directory, checkpoint or file of weights");
    settings.add(with_default(
        "the run's", settings_named(data_settings(), {"data", "canvas", "eval-on", "eval-limit",
                                                      "max-points", "max-broken"})));
    settings.add("batch", "N", fmt::format("samples per batch ({})", kBatch), "Options");
    command.flag("--json", json, "print JSON");
  }

  SettingFlags settings;
  PrecisionFlag precision;
  DeviceFlag device;
  std::string path;
  bool json = false;
};

void run_eval(const EvalFlags& flags) {
  use_threads(usable_cores());
  const auto device = find_device(flags.device.read());
  const auto trained = load_trained(flags.path, flags.precision.read());
  trained.network->to(device);
  const auto given = flags.settings.given();
  const auto source = open_data_of(trained, given, print_line);
  const auto batch = given.find("batch");
  const int64_t size =
      batch == given.end() ? kBatch : SettingValue{"--batch", batch->second}.number(1, 1 << 20);
  nlohmann::ordered_json json = {
      {"checkpoint", trained.path},
      {"step", trained.step},
      {"precision", name_of(kPrecisions, trained.network->options().precision)}};
  Table table({{"data"},
               {"samples", Align::right},
               {"loss", Align::right},
               {"top-1 %", Align::right},
               {"top-5 %", Align::right},
               {"error", Align::right},
               {"perplexity", Align::right}});
  for (const auto& set : source.evaluation)
    if (device.is_cpu())
      require_memory_to_evaluate(trained.network->options(), std::min(size, set.dataset->size()),
                                 "lower --batch");
  for (const auto& set : source.evaluation) {
    Progress progress(set.dataset->size(), stderr);
    int64_t done = 0;
    progress.update(0, set.name);
    const auto result = evaluate(
        *trained.network, set.dataset, size, 1,
        [&](int64_t count) { progress.update(done += count, set.name); }, target_unit(source));
    progress.finish();
    const bool classes = result.predictions.defined(), numbers = result.of_numbers;
    auto& entry = json["results"][set.name] = {{"count", result.count}, {"loss", result.loss}};
    if (classes)
      entry["top1"] = result.top1, entry["top5"] = result.top5;
    else if (numbers)
      entry["mae"] = result.mae;
    else
      entry["perplexity"] = result.perplexity();
    table.add({set.name, grouped(result.count), fmt::format("{:.4f}", result.loss),
               classes ? fmt::format("{:.2f}", 100 * result.top1) : "",
               classes ? fmt::format("{:.2f}", 100 * result.top5) : "",
               numbers ? fmt::format("{:.4g}", result.mae) : "",
               classes || numbers ? "" : fmt::format("{:.3f}", result.perplexity())});
  }
  fmt::print("{}", flags.json ? json_text(json) : table.str());
}

}  // namespace

void add_eval(Command program) {
  auto command = program.add_command("eval", "Evaluate a trained model");
  const auto flags = std::make_shared<EvalFlags>(command);
  command.footer(kEvalExamples);
  command.run([flags] { run_eval(*flags); });
}

}  // namespace translution::cli
