#include <fmt/format.h>

#include "bench.h"
#include "commands.h"
#include "instruction_sets.h"
#include "json_text.h"
#include "model_flags.h"
#include "translution/core/cpu_info.h"
#include "translution/ops/attention.h"
#include "translution/ops/products.h"
#include "translution/ops/runtime.h"
#include "translution/train/device.h"

namespace translution::cli {
namespace {

constexpr int64_t kBatch = 64;  // as in docs/kernels.md
constexpr int64_t kMaxBatch = 1 << 20, kMaxThreads = 1024, kMaxRepeats = 1000000;

constexpr const char* kBenchExamples =
    "Examples:\n"
    "  translution bench op --method translution --grid 7x7 --cls --batch 64\n"
    "  translution bench step --model vit-a/12 --method alpha_translution --image-size 84 \\\n"
    "                         --channels 1 --classes 10\n"
    "  translution bench generate --model gpt-a-160 --method translution\n"
    "  translution bench op --help";

}  // namespace

BenchFlags::BenchFlags(Command command, bool has_batch)
    : threads_(command.option("--threads", "N", "worker threads (all available cores)")),
      repeats_(command.option("--repeats", "N",
                              "number of repeats (those that fit into 3 seconds, at least 5)")),
      precision_(command, "float32"),
      device_(command) {
  if (has_batch)
    batch_ = command.option("--batch", "N", fmt::format("samples per batch ({})", kBatch));
  command.flag("--json", json_, "print JSON");
}

int BenchFlags::threads() const {
  return static_cast<int>(number_or(usable_cores(), threads_, kMaxThreads));
}

int64_t BenchFlags::batch() const { return number_or(kBatch, batch_, kMaxBatch); }

int64_t BenchFlags::repeats() const { return number_or(0, repeats_, kMaxRepeats); }

Precision BenchFlags::precision() const { return precision_.read().value_or(Precision::float32); }

torch::Device BenchFlags::device() const { return find_device(device_.read()); }

void BenchFlags::show(const Json& json, const std::string& text) const {
  fmt::print("{}", json_ ? json_text(json) : text);
}

double Rates::fraction() const {
  return float32.bf16_gemm.empty() ? fraction_of_sgemm() : gflops() / highest(float32.bf16_gemm);
}

void add_precision(const Rates& rates, const BenchFlags& flags, Json& json) {
  json["device"] = flags.device().str();
  json["precision"] = name_of(kPrecisions, flags.precision());
  if (flags.precision() != Precision::bf16) return;
  json["bf16_products"] = bf16_products(instruction_sets());
  json["bf16_gemm_gflops"] = highest(rates.float32.bf16_gemm);
  json["bf16_gemm_gflops_median"] = median(rates.float32.bf16_gemm);
  json["fraction_of_bf16"] = rates.fraction();
  add_times("float32_ms", rates.float32.milliseconds, json);
  json["speedup_over_float32"] = lowest(rates.float32.milliseconds) / rates.milliseconds;
}

void add_rates(const Rates& rates, const BenchFlags& flags, Json& json) {
  json["gflops"] = rates.gflops();
  json["sgemm_gflops"] = highest(rates.sgemm);
  json["sgemm_gflops_median"] = median(rates.sgemm);
  json["fraction_of_sgemm"] = rates.fraction_of_sgemm();
  json["peak_bytes"] = rates.peak_bytes ? Json(*rates.peak_bytes) : Json();
  json["batch"] = flags.batch();
  json["threads"] = flags.threads();
  json["repeats"] = rates.sgemm.size();
  json["gemm"] = product_libraries();
  json["isa"] = name_of(kIsas, chosen_isa());
  json["workspace"] = runtime().workspace();
  add_precision(rates, flags, json);
}

void add_times(const std::string& name, const std::vector<double>& samples, Json& json) {
  json[name] = lowest(samples);
  json[name + "_median"] = median(samples);
}

void BenchText::number(const char* label, const char* key, const char* format, const char* unit,
                       const std::string& remark) {
  table_.add({label, fmt::format(fmt::runtime(format), json_.at(key).get<double>()), unit, remark});
}

void BenchText::time(const char* label, const std::string& key) {
  const double middle = json_.at(key + "_median");
  number(label, key.c_str(), "{:.2f}", "ms", fmt::format("median {:.2f}", middle));
}

void BenchText::rates() {
  number("products", "gflops", "{:.1f}", "GFLOP/s");
  const double middle = json_.at("sgemm_gflops_median");
  number("SGEMM", "sgemm_gflops", "{:.1f}", "GFLOP/s", fmt::format("median {:.1f}", middle));
  number("fraction of SGEMM", "fraction_of_sgemm", "{:.3f}");
  precision();
}

void BenchText::precision() {
  if (!json_.contains("bf16_gemm_gflops")) return;
  const double middle = json_.at("bf16_gemm_gflops_median");
  number("bfloat16 products", "bf16_gemm_gflops", "{:.1f}", "GFLOP/s",
         fmt::format("median {:.1f}", middle));
  number("fraction of these", "fraction_of_bf16", "{:.3f}");
  time("in float32", "float32_ms");
  number("speed-up over float32", "speedup_over_float32", "{:.2f}");
}

std::string precision_line(Precision precision) {
  if (precision == Precision::float32) return "";
  return fmt::format("bfloat16 products: {}\n", bf16_products(instruction_sets()));
}

void BenchText::memory(const char* above) {
  const Json& peak = json_.at("peak_bytes");
  table_.add({"peak memory",
              peak.is_null() ? "-" : fmt::format("{:.1f}", peak.get<double>() / (1 << 20)), "MiB",
              fmt::format("above {}", above)});
}

std::string counted(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void add_bench(Command program) {
  auto command = program.add_command(
      "bench", "Measure the speed of a layer, a training step or text generation");
  command.takes_a_command();
  command.footer(kBenchExamples);
  add_bench_op(command);
  add_bench_step(command);
  add_bench_generate(command);
}

}  // namespace translution::cli
