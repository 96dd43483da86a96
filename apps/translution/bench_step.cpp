#include <fmt/format.h>

#include <cmath>

#include "bench.h"
#include "model_flags.h"
#include "threads.h"
#include "translution/core/memory.h"
#include "translution/models/cost.h"
#include "translution/models/memory_check.h"
#include "translution/train/device.h"
#include "translution/train/step.h"

namespace translution::cli {
namespace {

constexpr double kClip = 1.0;

constexpr const char* kBenchStepExamples =
    "A step is forward, cross entropy, backward, and AdamW with gradients clipped to norm 1, on "
    "one\n"
    "batch of random data. Figures:\n"
    "  step                 time of the best repeat, and the median\n"
    "  speed                samples per second in the best repeat\n"
    "  products             the FLOPs that `translution info` counts, over the time of the best\n"
    "                       repeat\n"
    "  SGEMM                rate of the machine: every thread multiplies 1024x1024 floats, "
    "between\n"
    "                       any two steps; the best counts, as for the step\n"
    "  fraction of SGEMM    products over SGEMM\n"
    "  peak memory          of one step, above weights, gradients and moments\n"
    "With --precision bf16 also:\n"
    "  bfloat16 products    rate of the machine: every thread multiplies 448 rows by packed "
    "192x192\n"
    "                       matrices, between any two steps\n"
    "  fraction of these    products over bfloat16 products\n"
    "  speed-up             over float32, whose steps run in turns with these, and whose layers "
    "save\n"
    "                       all encodings for backward if they fit into memory\n"
    "\n"
    "Examples:\n"
    "  translution bench step --model vit-a/12 --method translution --image-size 84 --channels 1 "
    "\\\n"
    "                         --classes 10 --batch 64\n"
    "  translution bench step --model gpt-a-160 --method alpha_translution --batch 8 --json";

struct StepFlags {
  explicit StepFlags(Command command) : model(command), bench(command, /*has_batch=*/true) {
    command.require_one_of({model.model()});
  }

  ModelFlags model;
  BenchFlags bench;
};

// A model, its optimizer and a batch of random data.
class BenchTask {
 public:
  BenchTask(const ModelOptions& model, const BenchFlags& flags)
      : network_(make_network(model, flags.device())),
        batch_(random_batch(model, flags.batch())),
        optimizer_(network_.module().parameters(), {}) {}

  void step() {
    const auto outcome = train_step(network_, optimizer_, batch_, {1, 0, kClip});
    if (!std::isfinite(outcome.loss) || !std::isfinite(outcome.norm))
      throw std::runtime_error("bench step: the gradients of a step are not finite");
    wait_for(network_.device());
  }

 private:
  static Network make_network(const ModelOptions& model, torch::Device device) {
    torch::manual_seed(0);
    Network network(model);
    network.to(device);
    return network;
  }

  Network network_;
  Batch batch_;
  AdamW optimizer_;
};

ModelOptions in_float32(ModelOptions model) {
  model.precision = Precision::float32;
  return model;
}

// Memory of the step; in bf16, of the step in float32 beside it, too.
double bytes_of(const ModelOptions& model, int64_t batch) {
  const double bytes = model_cost(model, batch).training_bytes;
  if (model.precision == Precision::float32) return bytes;
  return bytes + model_cost(in_float32(model), batch).training_bytes;
}

// The model in float32. It saves all encodings if two for every pair in every layer fit into
// memory.
ModelOptions fastest_in_float32(const ModelOptions& model, int64_t batch) {
  const auto& a = model.architecture;
  const auto tokens = static_cast<double>(model.tokens());
  const double saved = 2.0 * sizeof(float) * static_cast<double>(batch) * tokens * tokens *
                       static_cast<double>(a.heads * a.dim_head * a.depth);
  const bool fits = bytes_of(model, batch) + saved <= static_cast<double>(usable_bytes());
  auto options = in_float32(model);
  if (fits) options.workspace = kUnlimitedWorkspace;
  return options;
}

// Steps in float32 and measurements of the machine's bfloat16 products, in turns with steps in
// bf16.
class Float32Steps {
 public:
  Float32Steps(const ModelOptions& bf16, const BenchFlags& flags)
      : task_(fastest_in_float32(bf16, flags.batch()), flags),
        products_(Precision::bf16, flags.threads()) {
    task_.step();
  }

  void take_turn(Float32Turns& turns) {
    turns.bf16_gemm.push_back(products_.gflops());
    const Stopwatch watch;
    task_.step();
    turns.milliseconds.push_back(watch.milliseconds());
  }

 private:
  BenchTask task_;
  ProductRate products_;
};

Json measure_step(const ModelOptions& model, const BenchFlags& flags) {
  BenchTask task(model, flags);
  task.step();
  Rates rates;
  rates.peak_bytes = peak_bytes([&] { task.step(); });
  std::optional<Float32Steps> float32;
  if (model.precision == Precision::bf16) float32.emplace(model, flags);
  ProductRate sgemm(Precision::float32, flags.threads());
  std::vector<double> samples;  // ms
  rates.sgemm = take_turns(flags.repeats(), sgemm, [&] {
    const Stopwatch watch;
    task.step();
    samples.push_back(watch.milliseconds());
    if (float32) float32->take_turn(rates.float32);
  });
  rates.milliseconds = lowest(samples);
  rates.flops = model_cost(model).training_flops * static_cast<double>(flags.batch());
  Json json = {{"model", model.name()}, {"method", name_of(kMethods, model.position.method)}};
  add_times("step_ms", samples, json);
  json["samples_per_s"] = 1e3 * static_cast<double>(flags.batch()) / rates.milliseconds;
  add_rates(rates, flags, json);
  return json;
}

std::string step_text(const Json& json) {
  BenchText text(json);
  text.time("step", "step_ms");
  text.number("speed", "samples_per_s", "{:.1f}", "samples/s");
  text.rates();
  text.memory("weights, gradients and moments");
  return text.str();
}

void run_step(const StepFlags& flags) {
  auto model = flags.model.read();
  model.precision = flags.bench.precision();
  if (flags.bench.device().is_cpu()) {
    require_memory_to_train(model, flags.bench.batch(), "lower --batch");
    require_memory(bytes_of(model, flags.bench.batch()), "bf16 beside float32", "lower --batch");
  }
  use_threads(flags.bench.threads());
  const Json json = measure_step(model, flags.bench);
  flags.bench.show(json, fmt::format("{} with {}: batch {}, {}\n{}\n{}", model.name(),
                                     name_of(kMethods, model.position.method), flags.bench.batch(),
                                     counted(flags.bench.threads(), "thread"),
                                     precision_line(model.precision), step_text(json)));
}

}  // namespace

void add_bench_step(Command bench) {
  auto command = bench.add_command("step", "Measure a training step of a model");
  const auto flags = std::make_shared<StepFlags>(command);
  command.footer(kBenchStepExamples);
  command.run([flags] { run_step(*flags); });
}

}  // namespace translution::cli
