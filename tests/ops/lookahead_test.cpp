#include "translution/ops/lookahead.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"
#include "tests/support/thread_count.h"

namespace translution::testing {
namespace {

constexpr int64_t kTokens = 71, kChannels = 10, kHeads = 3, kWidth = 21;

struct TextCase {
  std::string name;
  OffsetOptions offsets;

  // Without this, gtest prints the bytes of the struct, including padding.
  friend std::ostream& operator<<(std::ostream& out, const TextCase& c) { return out << c.name; }
};

std::vector<TextCase> text_cases() {
  const std::vector<int64_t> grid{kTokens};
  return {{"relative", {grid, false, true}},
          {"absolute", {grid, false, true, Encoding::absolute}},
          {"direction", {grid, false, true, Encoding::relative, Sharing::direction, 5}},
          {"logarithmic", {grid, false, true, Encoding::relative, Sharing::logarithmic, 3}}};
}

class LookaheadTest : public ::testing::TestWithParam<TextCase> {
 protected:
  LookaheadTest() : offsets(std::make_shared<const OffsetTable>(GetParam().offsets)) {
    const auto table = [&] { return normal({offsets->num_slots(), kChannels, kWidth}, random); };
    weights = {table(), table(), table()};
    x = normal({kTokens, kChannels}, random);
  }

  // The output of the last of the first n tokens.
  at::Tensor expected(int64_t n, Precision precision = Precision::float32) const {
    AttentionCall call;
    call.heads = kHeads;
    call.pairs.text = pairs_text(*offsets);
    call.precision = precision;
    return translution(x.narrow(0, 0, n).unsqueeze(0), weights, call).out[0][n - 1];
  }

  Lookahead make(Precision precision = Precision::float32) const {
    return {weights, offsets, kHeads, precision};
  }

  void convert(at::ScalarType type, double scale = 1) {
    for (auto* weight : {&weights.q, &weights.k, &weights.v}) *weight = (*weight * scale).to(type);
    x = x.to(type);
  }

  at::Generator random = generator(GetParam().name);
  std::shared_ptr<const OffsetTable> offsets;
  RoleWeights weights;
  at::Tensor x;
};

TEST_P(LookaheadTest, MatchesTheLastTokenOfTheCompleteText) {
  for (const int64_t first : {1, 2, 33, 70}) {
    auto lookahead = make();
    for (int64_t n = first; n <= kTokens; ++n)
      ASSERT_TRUE(at::allclose(lookahead.gather(x.narrow(0, 0, n)), expected(n), 1e-11, 1e-12))
          << "token " << n << " of a text that starts at " << first;
  }
}

TEST_P(LookaheadTest, MatchesWithBiasRows) {
  for (auto* weight : {&weights.q, &weights.k, &weights.v})
    *weight = normal({offsets->num_slots(), kChannels + 1, kWidth}, random);
  auto lookahead = make();
  for (int64_t n = 1; n <= kTokens; ++n)
    ASSERT_TRUE(at::allclose(lookahead.gather(x.narrow(0, 0, n)), expected(n), 1e-11, 1e-12)) << n;
  convert(at::kFloat, /*scale=*/0.3);
  auto rounded = make(Precision::bf16);
  for (int64_t n = 1; n <= kTokens; ++n)
    ASSERT_LT(error(rounded.gather(x.narrow(0, 0, n)), expected(n, Precision::bf16)), 0.03) << n;
}

TEST_P(LookaheadTest, RestartDiscardsTheText) {
  auto lookahead = make();
  for (int64_t n = 1; n <= 20; ++n) lookahead.gather(x.narrow(0, 0, n));
  x = normal({kTokens, kChannels}, random);
  lookahead.restart();
  for (int64_t n = 20; n <= 25; ++n)
    ASSERT_TRUE(at::allclose(lookahead.gather(x.narrow(0, 0, n)), expected(n), 1e-11, 1e-12)) << n;
}

TEST_P(LookaheadTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  ThreadCount threads_now(1);
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2, 3}) {
    threads_now.set(threads);
    auto lookahead = make();
    for (int64_t n = 30; n < 35; ++n) lookahead.gather(x.narrow(0, 0, n));
    results.push_back(lookahead.gather(x.narrow(0, 0, 35)));
  }
  EXPECT_TRUE(results[0].equal(results[1]) && results[0].equal(results[2]));
}

// Lookahead rounds the contributions of tokens instead of the queries.
TEST_P(LookaheadTest, HasASimilarErrorToTheCompleteTextInBfloat16) {
  convert(at::kDouble, 0.3);
  std::vector<at::Tensor> truth;
  for (int64_t n = 1; n <= kTokens; ++n) truth.push_back(expected(n));
  convert(at::kFloat);
  std::vector<double> whole;
  for (int64_t n = 1; n <= kTokens; ++n)
    whole.push_back(error(expected(n, Precision::bf16), truth[n - 1]));
  for (const int64_t first : {1, 2, 33, 70}) {
    auto lookahead = make(Precision::bf16);
    double ours = 0, theirs = 0;
    for (int64_t n = first; n <= kTokens; ++n) {
      const auto gathered = lookahead.gather(x.narrow(0, 0, n));
      ASSERT_EQ(gathered.scalar_type(), at::kFloat);
      ours += error(gathered, truth[n - 1]);
      theirs += whole[n - 1];
    }
    EXPECT_LE(ours, 1.5 * theirs) << "a text that starts at " << first;
  }
}

TEST_P(LookaheadTest, AcceptsBfloat16Weights) {
  convert(at::kBFloat16, 0.3);
  auto ours = make();
  convert(at::kFloat);
  auto same = make(Precision::bf16);
  for (int64_t n = 1; n <= kTokens; ++n) {
    const auto rows = x.narrow(0, 0, n);
    const auto gathered = ours.gather(rows);
    ASSERT_TRUE(gathered.equal(same.gather(rows))) << n;
    ASSERT_EQ(ours.gather(rows.to(at::kBFloat16)).scalar_type(), at::kBFloat16);
  }
}

TEST_P(LookaheadTest, GivesTheSameBitsOnAnyNumberOfThreadsInBfloat16) {
  convert(at::kFloat);
  ThreadCount threads_now(1);
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2, 3}) {
    threads_now.set(threads);
    auto lookahead = make(Precision::bf16);
    for (int64_t n = 30; n < 35; ++n) lookahead.gather(x.narrow(0, 0, n));
    results.push_back(lookahead.gather(x.narrow(0, 0, 35)));
  }
  EXPECT_TRUE(results[0].equal(results[1]) && results[0].equal(results[2]));
}

INSTANTIATE_TEST_SUITE_P(Texts, LookaheadTest, ::testing::ValuesIn(text_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace translution::testing
