#include <fmt/format.h>

#include <numeric>

#include "bench.h"
#include "model_flags.h"
#include "threads.h"
#include "translution/core/random.h"
#include "translution/models/bf16_weights.h"
#include "translution/models/cost.h"
#include "translution/models/generate.h"
#include "translution/models/memory_check.h"
#include "translution/train/device.h"

namespace translution::cli {

using namespace detail;

namespace {

// Tokens at the end of the text over which the time of one is averaged. With features kept, some
// also work for those behind them, up to 32; without, each has the whole text to itself.
constexpr size_t kLastKept = 32, kLastWhole = 4;

constexpr const char* kBenchGenerateExamples =
    "A text of random tokens grows from one token to the length of the model, the logits of the\n"
    "next token computed after each: with the features of earlier tokens kept, and, in turns, "
    "with\n"
    "the whole context computed every time. Figures:\n"
    "  a token              at the end of the text: the average over the last 32, of which some "
    "also\n"
    "                       work for those behind them, or over the last 4 where all is computed\n"
    "                       anew; the best of all repeats, and the median\n"
    "  whole text           all tokens together\n"
    "  max error            largest difference of the last logits, relative to the largest logit\n"
    "  bfloat16 products    with --precision bf16: every thread multiplies 448 rows by packed\n"
    "                       192x192 matrices, between any two texts\n"
    "  fraction of these    of the FLOPs that `translution info` counts, over the whole text with\n"
    "                       features kept\n"
    "  speed-up             with --precision bf16: of the whole text with features kept, over\n"
    "                       float32 in turns with it\n"
    "\n"
    "Example:\n"
    "  translution bench generate --model gpt-a-160 --method translution";

struct GenerateFlags {
  explicit GenerateFlags(Command command) : model(command), bench(command) {}

  ModelFlags model;
  BenchFlags bench;
};

struct Times {
  std::vector<double> token, text;  // ms, one for each repeat
  torch::Tensor logits;             // behind the whole text
};

void write_text(const GPT& model, bool cache, Times& times) {
  Generator generator(model, {}, cache);
  Random random({0});
  std::vector<double> samples;  // ms per token
  for (int64_t i = 0; i < model->options.length; ++i) {
    generator.feed({random.below(model->options.vocabulary)});
    const Stopwatch watch;
    times.logits = generator.logits();
    wait_for(times.logits.device());
    samples.push_back(watch.milliseconds());
  }
  const auto last = samples.end() - std::min(cache ? kLastKept : kLastWhole, samples.size());
  times.token.push_back(std::accumulate(last, samples.end(), 0.0) /
                        static_cast<double>(samples.end() - last));
  times.text.push_back(std::accumulate(samples.begin(), samples.end(), 0.0));
}

GPT make_model(ModelOptions options, Precision precision, torch::Device device) {
  torch::manual_seed(0);
  options.precision = precision;
  GPT model(options);
  if (precision == Precision::bf16) hold_in_bf16(*model, options);
  model->to(device);
  return model;
}

Json measure_generation(const ModelOptions& options, const BenchFlags& flags) {
  const bool bf16 = options.precision == Precision::bf16;
  const auto device = flags.device();
  const GPT model = make_model(options, options.precision, device);
  const GPT other = bf16 ? make_model(options, Precision::float32, device) : GPT(nullptr);
  std::optional<ProductRate> products;
  if (bf16) products.emplace(Precision::bf16, flags.threads());
  Times kept, whole, in_float32;
  ProductRate sgemm(Precision::float32, flags.threads());
  Rates rates;
  rates.sgemm = take_turns(flags.repeats(), sgemm, [&] {
    write_text(model, true, kept);
    write_text(model, false, whole);
    if (!bf16) return;
    rates.float32.bf16_gemm.push_back(products->gflops());
    write_text(other, true, in_float32);
  });
  Json json = {{"model", options.name()}, {"method", name_of(kMethods, options.position.method)}};
  add_times("cached_token_ms", kept.token, json);
  add_times("uncached_token_ms", whole.token, json);
  json["token_speedup"] = lowest(whole.token) / lowest(kept.token);
  add_times("cached_text_ms", kept.text, json);
  add_times("uncached_text_ms", whole.text, json);
  json["text_speedup"] = lowest(whole.text) / lowest(kept.text);
  const auto difference = (kept.logits - whole.logits).abs().max() / whole.logits.abs().max();
  json["max_error"] = difference.item<double>();
  json["sgemm_gflops"] = highest(rates.sgemm);
  json["threads"] = flags.threads();
  json["repeats"] = rates.sgemm.size();
  rates.flops = model_cost(options).forward_flops;
  rates.milliseconds = lowest(kept.text);
  rates.float32.milliseconds = in_float32.text;
  json["gflops"] = rates.gflops();
  add_precision(rates, flags, json);
  return json;
}

std::string generation_text(const Json& json) {
  BenchText text(json);
  text.time("a token, features kept", "cached_token_ms");
  text.time("the same, computed anew", "uncached_token_ms");
  text.number("times as fast", "token_speedup", "{:.1f}");
  text.time("whole text, features kept", "cached_text_ms");
  text.time("the same, computed anew", "uncached_text_ms");
  text.number("times as fast", "text_speedup", "{:.1f}");
  text.number("max error", "max_error", "{:.1e}");
  text.precision();
  return text.str();
}

void run_generate(const GenerateFlags& flags) {
  auto model = flags.model.read();
  model.precision = flags.bench.precision();
  require(model.family == Family::gpt, model.name(), " makes no text; expected a gpt model");
  require_memory_to_evaluate(model, 1, "choose a smaller model");
  use_threads(flags.bench.threads());
  const Json json = measure_generation(model, flags.bench);
  flags.bench.show(json, fmt::format("{} with {}: text of {} tokens, {}\n{}\n{}", model.name(),
                                     name_of(kMethods, model.position.method), model.length,
                                     counted(flags.bench.threads(), "thread"),
                                     precision_line(model.precision), generation_text(json)));
}

}  // namespace

void add_bench_generate(Command bench) {
  auto command = bench.add_command("generate", "Text token by token, with and without a cache");
  const auto flags = std::make_shared<GenerateFlags>(command);
  command.footer(kBenchGenerateExamples);
  command.run([flags] { run_generate(*flags); });
}

}  // namespace translution::cli
