#include "training.h"

#include <fmt/format.h>

#include "signals.h"
#include "translution/core/cpu_info.h"
#include "translution/core/units.h"
#include "translution/ops/runtime.h"
#include "version.h"

namespace translution::cli {

using namespace detail;

TrainResult train_until_signal(RunOptions options, const DataSource& data) {
  options.comment =
      fmt::format("translution {} ({}), LibTorch {}, {}, {} threads", kVersion, kCommit,
                  kTorchVersion, name_of(kIsas, chosen_isa()), runtime().threads());
  options.facts = {{"program", fmt::format("{} ({})", kVersion, kCommit)},
                   {"LibTorch", kTorchVersion},
                   {"instruction set", name_of(kIsas, chosen_isa())}};
  const StopAtSignals signals;
  return train(options, data, stop_requested());
}

std::string metrics_text(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics.values) {
    if (name == "top1" || name == "top5")
      text += fmt::format("  {} {:.2f} %", name, 100 * value);
    else if (name == share_metric(Precision::float32))
      text += fmt::format("  of SGEMM {:.2f} %", 100 * value);
    else if (name == share_metric(Precision::bf16))
      text += fmt::format("  of bfloat16 products {:.2f} %", 100 * value);
    else if (name == "samples_per_s" || name == "tokens_per_s")
      text += fmt::format("  {} {}/s", grouped(value), name.substr(0, name.find('_')));
    else if (name == "loss" || name == "perplexity" || name == "mae")
      text += fmt::format("  {} {:.4g}", name, value);
  }
  return text.empty() ? text : text.substr(2);
}

}  // namespace translution::cli
