#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cmath>

#include "bench.h"
#include "memory_check.h"
#include "model_flags.h"
#include "translution/models/cost.h"
#include "translution/models/gpt.h"
#include "translution/models/vit.h"
#include "translution/ops/cross_entropy.h"
#include "translution/train/adamw.h"

namespace translution::cli {
namespace {

constexpr double kClip = 1.0;

constexpr const char* kBenchStepExamples =
    "A step is what training repeats: forward, cross entropy, backward, and AdamW with gradients\n"
    "clipped to norm 1, on one batch of random data. Figures:\n"
    "  step                 the best of all repeats, and the median\n"
    "  products             the FLOPs that `translution info` counts, in the best time\n"
    "  SGEMM                every thread multiplies 1024x1024 floats, between any two steps; the\n"
    "                       best counts, as for the step\n"
    "  peak memory          of one step, above weights, gradients and moments\n"
    "\n"
    "Examples:\n"
    "  translution bench step --model vit-a/12 --method translution --image-size 84 --channels 1 "
    "\\\n"
    "                         --classes 10 --batch 64\n"
    "  translution bench step --model gpt-a-160 --method alpha_translution --batch 8 --json";

struct StepFlags {
  explicit StepFlags(Command command) : model(command), bench(command, "samples of a step") {}

  ModelFlags model;
  BenchFlags bench;
};

// A model before a batch of random data.
struct BenchTask {
  std::vector<torch::Tensor> parameters;
  std::function<torch::Tensor()> loss;
};

template <typename Model>
BenchTask make_task(Model model, const torch::Tensor& input, const torch::Tensor& target) {
  return {model->parameters(), [=]() mutable {
            const auto logits = model->forward(input);
            return cross_entropy(logits.reshape({-1, logits.size(-1)}), target);
          }};
}

BenchTask make_task(const ModelOptions& o, int64_t batch) {
  torch::manual_seed(0);
  if (o.family == Family::vit)
    return make_task(ViT(o), torch::randn({batch, o.channels, o.image_size[0], o.image_size[1]}),
                     torch::randint(o.classes, {batch}, torch::kLong));
  return make_task(GPT(o), torch::randint(o.vocabulary, {batch, o.length}, torch::kLong),
                   torch::randint(o.vocabulary, {batch * o.length}, torch::kLong));
}

void step(const BenchTask& task, AdamW& optimizer) {
  optimizer.zero_grad();
  task.loss().backward();
  const double norm = optimizer.step(kClip);
  if (!std::isfinite(norm))
    throw std::runtime_error("bench step: the gradients of a step are not finite");
}

Json measure_step(const ModelOptions& model, const BenchFlags& flags) {
  const auto task = make_task(model, flags.batch());
  AdamW optimizer(task.parameters, {});
  step(task, optimizer);
  Rates rates;
  rates.peak_bytes = peak_bytes([&] { step(task, optimizer); });
  Sgemm sgemm(flags.threads());
  std::vector<double> samples;  // ms
  rates.sgemm = take_turns(flags.repeats(), sgemm, [&] {
    const Stopwatch watch;
    step(task, optimizer);
    samples.push_back(watch.milliseconds());
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
  const auto model = flags.model.read();
  require_memory_to_train(model, flags.bench.batch(), "lower --batch");
  at::set_num_threads(flags.bench.threads());
  const Json json = measure_step(model, flags.bench);
  flags.bench.show(json, fmt::format("{} with {}: batch {}, {}\n\n{}", model.name(),
                                     name_of(kMethods, model.position.method), flags.bench.batch(),
                                     counted(flags.bench.threads(), "thread"), step_text(json)));
}

}  // namespace

void add_bench_step(Command bench) {
  auto command = bench.add_command("step", "One step of training a model");
  const auto flags = std::make_shared<StepFlags>(command);
  command.footer(kBenchStepExamples);
  command.run([flags] { run_step(*flags); });
}

}  // namespace translution::cli
