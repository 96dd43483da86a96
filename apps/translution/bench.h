#pragma once

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "measure.h"
#include "model_flags.h"
#include "table.h"

namespace translution::cli {

using Json = nlohmann::ordered_json;

/// The options that all benchmarks have; --batch only those that say what it counts.
class BenchFlags {
 public:
  explicit BenchFlags(Command command, const char* batch_help = nullptr);

  int threads() const;
  int64_t batch() const;
  int64_t repeats() const;  ///< 0: as many as fit
  Precision precision() const;
  torch::Device device() const;
  /// Prints the JSON if asked for, the text if not.
  void show(const Json& json, const std::string& text) const;

 private:
  Option batch_, threads_, repeats_;
  PrecisionFlag precision_;
  DeviceFlag device_;
  bool json_ = false;
};

/// Beside a benchmark in bf16, between its repeats so that noise hits both alike: the machine's
/// products of bfloat16, and the same work in float32.
struct Float32Turns {
  std::vector<double> bf16_gemm;     ///< GFLOP/s, one for each repeat
  std::vector<double> milliseconds;  ///< in float32
};

/// What a benchmark found, apart from its times.
struct Rates {
  double flops = 0;           ///< done in the time below
  double milliseconds = 0;    ///< the best
  std::vector<double> sgemm;  ///< GFLOP/s, one for each repeat
  std::optional<double> peak_bytes;
  Float32Turns float32 = {};  ///< in bf16

  double gflops() const { return flops / milliseconds / 1e6; }
  double fraction_of_sgemm() const { return gflops() / highest(sgemm); }
  /// Of the products in the precision measured.
  double fraction() const;
};

/// gflops, sgemm_gflops, fraction_of_sgemm, peak_bytes, and what describes the run.
void add_rates(const Rates& rates, const BenchFlags& flags, Json& json);

/// precision, and in bf16: how it is multiplied, bf16_gemm_gflops, fraction_of_bf16 and
/// speedup_over_float32.
void add_precision(const Rates& rates, const BenchFlags& flags, Json& json);

/// "forward_ms" and "forward_ms_median", for `name` forward_ms.
void add_times(const std::string& name, const std::vector<double>& samples, Json& json);

/// Lines of text for what stands in the JSON: figure, number, unit, remark.
class BenchText {
 public:
  explicit BenchText(const Json& json) : json_(json) {}

  void time(const char* label, const std::string& key);
  void number(const char* label, const char* key, const char* format, const char* unit = "",
              const std::string& remark = "");
  /// What add_rates put there.
  void rates();
  /// What add_precision put there.
  void precision();
  void memory(const char* above);
  std::string str() const { return table_.str(); }

 private:
  const Json& json_;
  Table table_{{{}, {"", Align::right}, {}, {}}};
};

/// Bytes with which float32 keeps every encoding of its layers for backward, which is its fastest.
constexpr int64_t kUnlimitedWorkspace = int64_t{1} << 60;

/// The line below a title: how bfloat16 is multiplied. Empty in float32.
std::string precision_line(Precision precision);

/// "1 thread", "2 threads".
std::string counted(int64_t count, const char* noun);

void add_bench_generate(Command bench);
void add_bench_op(Command bench);
void add_bench_step(Command bench);

}  // namespace translution::cli
