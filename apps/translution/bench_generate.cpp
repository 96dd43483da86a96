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

// Number of tokens, at the end of the text, over which the time per token is averaged. With a
// cache, a token may also do work for the up to 32 tokens after it; without one, tokens are
// independent.
constexpr size_t kLastCached = 32, kLastUncached = 4;

constexpr const char* kBenchGenerateExamples =
    "Feeds random tokens, one by one, up to the length of the model, and computes the logits of "
    "the\n"
    "next token after each. Texts with a cache of the features of earlier tokens alternate with\n"
    "texts without one, for which every token computes its whole context. Figures:\n"
    "  token                time per token at the end of the text: with a cache, the mean of the\n"
    "                       last 32 tokens, as some compute ahead for those after them; without,\n"
    "                       the mean of the last 4. Best repeat and median\n"
    "  text                 time of all tokens; best repeat and median\n"
    "  max error            largest difference between the last logits with and without the "
    "cache,\n"
    "                       relative to the largest logit\n"
    "With --precision bf16 also:\n"
    "  bfloat16 products    rate of the machine: every thread multiplies 448 rows by packed "
    "192x192\n"
    "                       matrices, between any two texts\n"
    "  fraction of these    the FLOPs that `translution info` counts, over the time of the text "
    "with\n"
    "                       a cache, as a fraction of that rate\n"
    "  speed-up             of the text with a cache over float32, measured in turns\n"
    "\n"
    "Examples:\n"
    "  translution bench generate --model gpt-a-160 --method translution\n"
    "  translution bench generate --model gpt-a-160 --precision bf16 --json";

struct GenerateFlags {
  explicit GenerateFlags(Command command) : model(command), bench(command, /*has_batch=*/false) {
    command.require_one_of({model.model()});
  }

  ModelFlags model;
  BenchFlags bench;
};

struct Times {
  std::vector<double> token, text;  // ms, one for each repeat
  torch::Tensor logits;             // after the last token
};

void time_text(const GPT& model, bool cache, Times& times) {
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
  const auto last = samples.end() - std::min(cache ? kLastCached : kLastUncached, samples.size());
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
  Times cached, uncached, in_float32;
  ProductRate sgemm(Precision::float32, flags.threads());
  Rates rates;
  rates.sgemm = take_turns(flags.repeats(), sgemm, [&] {
    time_text(model, true, cached);
    time_text(model, false, uncached);
    if (!bf16) return;
    rates.float32.bf16_gemm.push_back(products->gflops());
    time_text(other, true, in_float32);
  });
  Json json = {{"model", options.name()}, {"method", name_of(kMethods, options.position.method)}};
  add_times("cached_token_ms", cached.token, json);
  add_times("uncached_token_ms", uncached.token, json);
  json["token_speedup"] = lowest(uncached.token) / lowest(cached.token);
  add_times("cached_text_ms", cached.text, json);
  add_times("uncached_text_ms", uncached.text, json);
  json["text_speedup"] = lowest(uncached.text) / lowest(cached.text);
  const auto difference =
      (cached.logits - uncached.logits).abs().max() / uncached.logits.abs().max();
  json["max_error"] = difference.item<double>();
  json["sgemm_gflops"] = highest(rates.sgemm);
  json["threads"] = flags.threads();
  json["repeats"] = rates.sgemm.size();
  rates.flops = model_cost(options).forward_flops;
  rates.milliseconds = lowest(cached.text);
  rates.float32.milliseconds = in_float32.text;
  json["gflops"] = rates.gflops();
  add_precision(rates, flags, json);
  return json;
}

std::string generation_text(const Json& json) {
  BenchText text(json);
  text.time("token, with a cache", "cached_token_ms");
  text.time("token, without", "uncached_token_ms");
  text.number("times as fast", "token_speedup", "{:.1f}");
  text.time("text, with a cache", "cached_text_ms");
  text.time("text, without", "uncached_text_ms");
  text.number("times as fast", "text_speedup", "{:.1f}");
  text.number("max error", "max_error", "{:.1e}");
  text.precision();
  return text.str();
}

void run_generate(const GenerateFlags& flags) {
  auto model = flags.model.read();
  model.precision = flags.bench.precision();
  require(model.family == Family::gpt, model.name(), " generates no text; expected a gpt model");
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
  auto command = bench.add_command("generate", "Measure text generation, with and without a cache");
  const auto flags = std::make_shared<GenerateFlags>(command);
  command.footer(kBenchGenerateExamples);
  command.run([flags] { run_generate(*flags); });
}

}  // namespace translution::cli
