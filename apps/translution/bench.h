#pragma once

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "measure.h"
#include "model_flags.h"
#include "table.h"

namespace translution::cli {

using Json = nlohmann::ordered_json;

/// The options that all benchmarks have, and --batch.
class BenchFlags {
 public:
  BenchFlags(Command command, bool has_batch);

  int threads() const;
  int64_t batch() const;
  int64_t repeats() const;  ///< 0: those that fit into the default time
  Precision precision() const;
  torch::Device device() const;
  /// Prints the JSON with --json, otherwise the text.
  void show(const Json& json, const std::string& text) const;

 private:
  Option batch_, threads_, repeats_;
  PrecisionFlag precision_;
  DeviceFlag device_;
  bool json_ = false;
};

/// Measurements between the repeats of a benchmark in bf16, so that noise affects both alike: the
/// machine's rate of bfloat16 products, and the same work in float32.
struct Float32Turns {
  std::vector<double> bf16_gemm;     ///< GFLOP/s, one for each repeat
  std::vector<double> milliseconds;  ///< in float32
};

/// The results of a benchmark, apart from its times.
struct Rates {
  double flops = 0;           ///< of the best repeat
  double milliseconds = 0;    ///< of the best repeat
  std::vector<double> sgemm;  ///< GFLOP/s, one for each repeat
  std::optional<double> peak_bytes;
  Float32Turns float32 = {};  ///< empty unless the benchmark is in bf16

  double gflops() const { return flops / milliseconds / 1e6; }
  double fraction_of_sgemm() const { return gflops() / highest(sgemm); }
  /// gflops() as a fraction of the machine's rate in the precision measured.
  double fraction() const;
};

/// Adds gflops, sgemm_gflops, fraction_of_sgemm, peak_bytes, and a description of machine and call.
void add_rates(const Rates& rates, const BenchFlags& flags, Json& json);

/// Adds device and precision; in bf16 also bf16_products (the instructions used),
/// bf16_gemm_gflops, fraction_of_bf16, float32_ms and speedup_over_float32.
void add_precision(const Rates& rates, const BenchFlags& flags, Json& json);

/// Adds the lowest and the median: "forward_ms" and "forward_ms_median" for `name` forward_ms.
void add_times(const std::string& name, const std::vector<double>& samples, Json& json);

/// Entries of the JSON as lines of text: figure, number, unit, remark.
class BenchText {
 public:
  explicit BenchText(const Json& json) : json_(json) {}

  void time(const char* label, const std::string& key);
  void number(const char* label, const char* key, const char* format, const char* unit = "",
              const std::string& remark = "");
  /// The entries of add_rates.
  void rates();
  /// The entries of add_precision.
  void precision();
  void memory(const char* above);
  std::string str() const { return table_.str(); }

 private:
  const Json& json_;
  Table table_{{{}, {"", Align::right}, {}, {}}};
};

/// A workspace, in bytes, in which every layer saves all its encodings for backward: the fastest
/// setting of float32.
constexpr int64_t kUnlimitedWorkspace = int64_t{1} << 60;

/// The line below a title: the instructions for bfloat16 products. Empty in float32.
std::string precision_line(Precision precision);

/// "1 thread", "2 threads".
std::string counted(int64_t count, const char* noun);

void add_bench_generate(Command bench);
void add_bench_op(Command bench);
void add_bench_step(Command bench);

}  // namespace translution::cli
