#include "translution/models/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "tests/models/tiny_models.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using Tokens = std::vector<int64_t>;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

Tokens generate(Generator& generator, int count) {
  Tokens tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(generator.next());
  return tokens;
}

Tokens generate(const GPT& model, const SamplingOptions& sampling, const Tokens& prompt,
                int count) {
  Generator generator(model, sampling);
  generator.feed(prompt);
  return generate(generator, count);
}

template <typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// The share of each token in `draws` draws, at different positions of a text.
std::vector<double> frequencies(const at::Tensor& logits, const SamplingOptions& sampling,
                                int draws) {
  std::vector<double> counts(logits.numel(), 0.0);
  for (int position = 0; position < draws; ++position)
    ++counts[sample_token(logits, sampling, position)];
  for (double& count : counts) count /= draws;
  return counts;
}

const at::Tensor kLogits = torch::tensor({0.5, 0.05, 0.2, 0.1, 0.15}).log();

void expect_frequencies(const SamplingOptions& sampling, const std::vector<double>& expected) {
  const int draws = 20000;
  const auto drawn = frequencies(kLogits, sampling, draws);
  for (size_t token = 0; token < expected.size(); ++token) {
    const double deviation = std::sqrt(expected[token] * (1 - expected[token]) / draws);
    EXPECT_LE(std::abs(drawn[token] - expected[token]), 4 * deviation) << "token " << token;
  }
}

TEST(Generator, GivesTheSameTokensAndLogitsWithAndWithoutTheCache) {
  SamplingOptions sampling;
  for (const auto& [name, position] : every_position()) {
    auto model = build<GPT>(tiny_gpt(position), torch::kFloat);
    Generator cached(model, sampling), uncached(model, sampling, /*cache=*/false);
    for (auto* generator : {&cached, &uncached}) generator->feed({3, 1, 4});
    for (int i = 0; i < 17; ++i) {  // the context of 7 overflows four times
      ASSERT_LE(largest_difference(cached.logits(), uncached.logits()), 1e-5) << name << ", " << i;
      ASSERT_EQ(cached.next(), uncached.next()) << name << ", " << i;
    }
  }
}

TEST(Generator, GivesTheLogitsOfTheModelInBfloat16) {
  for (const auto& [name, position] : every_position()) {
    auto options = tiny_gpt(position);
    options.precision = Precision::bf16;
    auto model = build<GPT>(options, torch::kFloat);
    Generator generator(model);
    Tokens text;
    for (const int64_t token : {10, 0, 7, 7, 2, 9, 5}) {
      generator.feed({token});
      text.push_back(token);
      const auto expected = model(torch::tensor(text, torch::kLong).unsqueeze(0))[0][-1];
      EXPECT_LE(largest_difference(generator.logits(), expected),
                0.02 * expected.abs().max().item<double>())
          << name << ", " << text.size();
    }
  }
}

TEST(Generator, GivesTheLogitsOfTheModel) {
  for (const auto& [name, position] : every_position()) {
    auto model = build<GPT>(tiny_gpt(position));
    Generator generator(model);
    Tokens text;
    for (const int64_t token : {10, 0, 7, 7, 2, 9, 5}) {
      generator.feed({token});
      text.push_back(token);
      const auto expected = model(torch::tensor(text, torch::kLong).unsqueeze(0))[0][-1];
      EXPECT_TRUE(agree(generator.logits(), expected)) << name << ", " << text.size();
    }
  }
}

TEST(Generator, TakesHybridLayersAndAnInputEmbedding) {
  auto options = tiny_gpt();
  options.hybrid_layers = 1;
  options.input_embedding = true;
  auto model = build<GPT>(options);
  Generator cached(model), uncached(model, {}, /*cache=*/false);
  for (auto* generator : {&cached, &uncached}) generator->feed({3, 1, 4});
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(agree(cached.logits(), uncached.logits())) << i;
    ASSERT_EQ(cached.next(), uncached.next()) << i;
  }
}

TEST(Generator, DropsTheOlderHalfWhenTheContextIsFull) {
  auto model = build<GPT>(tiny_gpt());
  for (const bool cache : {true, false}) {
    Generator generator(model, {}, cache);
    generator.feed({1, 2, 3, 4, 5, 6, 7});
    generator.logits();
    generator.feed({8});
    const auto left = torch::tensor({{5, 6, 7, 8}}, torch::kLong);
    EXPECT_TRUE(agree(generator.logits(), model(left)[0][-1])) << cache;
  }
}

TEST(Generator, DoesNotDependOnThePiecesInWhichATextIsFed) {
  auto model = build<GPT>(tiny_gpt());
  const Tokens text{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4, 5, 6};
  for (const bool cache : {true, false}) {
    Generator at_once(model, {}, cache);
    at_once.feed(text);
    for (const size_t piece : {1, 2, 3, 5}) {
      Generator pieces(model, {}, cache);
      for (size_t first = 0; first < text.size(); first += piece) {
        const size_t end = std::min(text.size(), first + piece);
        pieces.feed({text.begin() + first, text.begin() + end});
        pieces.logits();
      }
      EXPECT_TRUE(agree(pieces.logits(), at_once.logits())) << piece;
      EXPECT_EQ(generate(pieces, 1), generate(at_once, 1)) << piece;
      at_once = Generator(model, {}, cache);
      at_once.feed(text);
    }
  }
}

TEST(Generator, WorksWithAContextOfOneToken) {
  auto options = tiny_gpt();
  options.length = 1;
  auto model = build<GPT>(options);
  Generator generator(model);
  generator.feed({4, 2});
  for (int i = 0; i < 5; ++i) {
    const auto token = torch::tensor({{generator.next()}}, torch::kLong);
    EXPECT_TRUE(agree(generator.logits(), model(token)[0][-1])) << i;
  }
}

// Three layers, up to 128 tokens.
ModelOptions small_gpt() {
  auto options = tiny_gpt();
  options.architecture = {"small", 3, 64, 2, 64, 32};
  options.length = 128;
  return options;
}

// A generator that has been fed `length` tokens and has computed all but the last.
Generator before_last(const GPT& model, bool cache) {
  Generator generator(model, {}, cache);
  generator.feed(Tokens(model->options.length - 1, 3));
  generator.logits();
  generator.feed({5});
  return generator;
}

// With a Lookahead, some tokens also multiply for later ones, so only complete texts can be
// counted.
TEST(Generator, MultipliesOncePerPairAndRelativeRole) {
  if (!runtime().fused()) GTEST_SKIP() << "the portable path does not count FLOPs";
  const auto options = small_gpt();
  const auto& a = options.architecture;
  Generator generator(build<GPT>(options, torch::kFloat));
  const int64_t before = runtime().product_flops();
  for (int64_t i = 0; i < options.length; ++i) {
    generator.feed({i % 7});
    generator.logits();
  }
  const int64_t width = a.heads * a.dim_head, pairs = options.length * (options.length + 1) / 2;
  const int64_t relative = 3 * pairs * a.dim * width, out = width * a.dim;
  const int64_t mlp = 2 * a.dim * a.mlp_dim, head = a.dim * options.vocabulary;
  const int64_t shared = options.length * (a.depth * (out + mlp) + head);
  EXPECT_EQ(runtime().product_flops() - before, 2 * (a.depth * relative + shared));
}

double seconds_for_one_token(const GPT& model, bool cache) {
  using Clock = std::chrono::steady_clock;
  auto generator = before_last(model, cache);
  const auto start = Clock::now();
  generator.logits();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(Generator, IsFasterWithTheCache) {
  if (!runtime().fused()) GTEST_SKIP() << "the portable path has overhead for every slot";
  auto model = build<GPT>(small_gpt(), torch::kFloat);
  // The best of repeats in turns, because other processes may use the machine.
  double cached = std::numeric_limits<double>::infinity(), uncached = cached;
  for (int repeat = 0; repeat < 20; ++repeat) {
    cached = std::min(cached, seconds_for_one_token(model, true));
    uncached = std::min(uncached, seconds_for_one_token(model, false));
  }
  EXPECT_GT(uncached, 2 * cached) << cached << " s with the cache";
  RecordProperty("ratio", std::to_string(uncached / cached));
}

TEST(Generator, PreservesTheModelsMode) {
  auto options = tiny_gpt();
  options.dropout = 0.5;
  auto model = build<GPT>(options);
  for (const bool training : {true, false}) {
    model->train(training);
    Generator generator(model);
    generator.feed({1, 2});
    const auto logits = generator.logits();
    EXPECT_FALSE(logits.requires_grad());
    EXPECT_EQ(model->is_training(), training);
    EXPECT_EQ(model->backbone->blocks->at<BlockImpl>(1).dropout->is_training(), training);
    model->eval();
    EXPECT_TRUE(agree(logits, model(torch::tensor({{1, 2}}, torch::kLong))[0][-1]));
  }
}

TEST(Generator, DependsOnlyOnTheSeed) {
  auto model = build<GPT>(tiny_gpt());
  SamplingOptions seven, eight;
  seven.seed = 7, eight.seed = 8;
  const auto tokens = generate(model, seven, {1}, 30);
  EXPECT_EQ(generate(model, seven, {1}, 30), tokens);
  EXPECT_NE(generate(model, eight, {1}, 30), tokens);
  EXPECT_THAT(tokens, ::testing::Each(AllOf(Ge(0), Le(10))));
}

TEST(Generator, RejectsInvalidInputWithAMessage) {
  auto model = build<GPT>(tiny_gpt());
  Generator generator(model);
  EXPECT_THAT(message_of([&] { generator.next(); }), HasSubstr("feed a prompt of one or more"));
  EXPECT_THAT(message_of([&] { generator.feed({}); }), HasSubstr("one or more tokens, got none"));
  EXPECT_THAT(message_of([&] { generator.feed({1, 11}); }), HasSubstr("from 0 to 10, got 11"));
  EXPECT_THAT(message_of([&] { generator.feed({-1}); }), HasSubstr("from 0 to 10, got -1"));
  EXPECT_THAT(message_of([&] { generator.next(); }), HasSubstr("feed a prompt"))
      << "rejected tokens are not appended";
  EXPECT_THAT(message_of([] { Generator(GPT(nullptr)); }), HasSubstr("the model is missing"));
}

TEST(Sampling, RejectsOptionsOutOfRange) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const auto expect_rejected = [](const SamplingOptions& options, const char* what) {
    EXPECT_THROW(options.check(), std::invalid_argument) << what;
    EXPECT_THAT(message_of([&] { sample_token(kLogits, options, 0); }), HasSubstr(what));
    EXPECT_THAT(message_of([&] { Generator(build<GPT>(tiny_gpt()), options); }), HasSubstr(what));
  };
  for (const double temperature : {-0.1, nan, infinity})
    expect_rejected({temperature}, "expected a temperature of 0 or more, got ");
  expect_rejected({1, -1}, "expected top_k of 0 (all tokens) or more, got -1");
  for (const double top_p : {0.0, -0.5, 1.01, nan})
    expect_rejected({1, 0, top_p}, "expected top_p above 0 and up to 1, got ");
}

TEST(Sampling, RejectsInvalidLogits) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, infinity})
    EXPECT_THAT(message_of([&] {
                  sample_token(torch::tensor({1.0, bad, 2.0}), {}, 0);
                }),
                HasSubstr("the highest logit is"));
  EXPECT_THAT(message_of([] {
                sample_token(torch::zeros({2, 3}), {}, 0);
              }),
              HasSubstr("expected logits [vocabulary], got [2, 3]"));
  EXPECT_THAT(message_of([] { sample_token({}, {}, 0); }), HasSubstr("got none"));
}

TEST(Sampling, NeverDrawsAnImpossibleToken) {
  const auto logits = torch::tensor({0.0, -std::numeric_limits<double>::infinity(), 0.0});
  EXPECT_EQ(frequencies(logits, {}, 500)[1], 0);
}

TEST(Sampling, IsGreedyWithTemperatureZeroTopKOneOrTinyTopP) {
  torch::manual_seed(kSeed);
  for (uint64_t position = 0; position < 50; ++position) {
    const auto logits = torch::randn({101});
    const int64_t likeliest = logits.argmax().item<int64_t>();
    EXPECT_EQ(sample_token(logits, {0}, position), likeliest);
    EXPECT_EQ(sample_token(logits, {1, 1}, position), likeliest);
    EXPECT_EQ(sample_token(logits, {1, 0, 1e-9}, position), likeliest);
    EXPECT_EQ(sample_token(logits, {1e-300}, position), likeliest);
  }
  const auto equal = torch::zeros({9});
  for (const SamplingOptions& greedy :
       {SamplingOptions{0}, SamplingOptions{1, 1}, SamplingOptions{1, 0, 1e-9}})
    EXPECT_EQ(sample_token(equal, greedy, 3), 0) << "the first of equal logits";
}

TEST(Sampling, DrawsTokensWithTheirProbabilities) {
  expect_frequencies({}, {0.5, 0.05, 0.2, 0.1, 0.15});
  expect_frequencies({1, 100}, {0.5, 0.05, 0.2, 0.1, 0.15});
}

TEST(Sampling, RaisesProbabilitiesToTheInverseTemperature) {
  const auto expected = kLogits.mul(2).softmax(0);
  expect_frequencies({0.5}, {expected.data_ptr<float>(), expected.data_ptr<float>() + 5});
}

TEST(Sampling, TopKDrawsFromTheKMostLikely) {
  expect_frequencies({1, 3}, {0.5 / 0.85, 0, 0.2 / 0.85, 0, 0.15 / 0.85});
}

TEST(Sampling, TopPDrawsFromTheFewestTokensThatReachIt) {
  expect_frequencies({1, 0, 0.6}, {0.5 / 0.7, 0, 0.2 / 0.7, 0, 0});
  expect_frequencies({1, 0, 0.49}, {1, 0, 0, 0, 0});
}

TEST(Sampling, AppliesTopPAfterTopK) {
  // The first token has 5/7 of the probability of the two most likely, but only 1/2 of all.
  expect_frequencies({1, 2, 0.7}, {1, 0, 0, 0, 0});
}

}  // namespace
}  // namespace translution
