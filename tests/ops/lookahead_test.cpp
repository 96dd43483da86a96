#include "translution/ops/lookahead.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"

namespace translution::testing {
namespace {

constexpr int64_t kTokens = 71, kChannels = 10, kHeads = 3, kWidth = 21;

struct TextCase {
  std::string name;
  OffsetOptions offsets;

  // Instead of its bytes, some of which are padding.
  friend std::ostream& operator<<(std::ostream& out, const TextCase& c) { return out << c.name; }
};

std::vector<TextCase> text_cases() {
  const std::vector<int64_t> grid{kTokens};
  return {{"relative", {grid, false, true}},
          {"absolute", {grid, false, true, Encoding::absolute}},
          {"direction", {grid, false, true, Encoding::relative, Sharing::direction, 5}},
          {"logarithmic", {grid, false, true, Encoding::relative, Sharing::logarithmic, 3}}};
}

class LookaheadOf : public ::testing::TestWithParam<TextCase> {
 protected:
  LookaheadOf() : offsets(std::make_shared<const OffsetTable>(GetParam().offsets)) {
    const auto table = [&] { return normal({offsets->num_slots(), kChannels, kWidth}, random); };
    weights = {table(), table(), table()};
    x = normal({kTokens, kChannels}, random);
  }

  // What the last of the first n tokens gathers.
  at::Tensor wanted(int64_t n) const {
    AttentionCall call;
    call.heads = kHeads;
    call.pairs.text = pairs_text(*offsets);
    return translution(x.narrow(0, 0, n).unsqueeze(0), weights, call).out[0][n - 1];
  }

  Lookahead make() const { return {weights, offsets, kHeads}; }

  at::Generator random = generator(GetParam().name);
  std::shared_ptr<const OffsetTable> offsets;
  RoleWeights weights;
  at::Tensor x;
};

TEST_P(LookaheadOf, GathersWhatTheWholeTextGivesForItsLastToken) {
  for (const int64_t first : {1, 2, 33, 70}) {
    auto lookahead = make();
    for (int64_t n = first; n <= kTokens; ++n)
      ASSERT_TRUE(at::allclose(lookahead.gather(x.narrow(0, 0, n)), wanted(n), 1e-11, 1e-12))
          << "token " << n << " of a text begun at " << first;
  }
}

TEST_P(LookaheadOf, ForgetsATextAtARestart) {
  auto lookahead = make();
  for (int64_t n = 1; n <= 20; ++n) lookahead.gather(x.narrow(0, 0, n));
  x = normal({kTokens, kChannels}, random);
  lookahead.restart();
  for (int64_t n = 20; n <= 25; ++n)
    ASSERT_TRUE(at::allclose(lookahead.gather(x.narrow(0, 0, n)), wanted(n), 1e-11, 1e-12)) << n;
}

TEST_P(LookaheadOf, GivesTheSameBitsOnAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    auto lookahead = make();
    for (int64_t n = 30; n < 35; ++n) lookahead.gather(x.narrow(0, 0, n));
    results.push_back(lookahead.gather(x.narrow(0, 0, 35)));
  }
  at::set_num_threads(before);
  EXPECT_TRUE(results[0].equal(results[1]) && results[0].equal(results[2]));
}

INSTANTIATE_TEST_SUITE_P(Texts, LookaheadOf, ::testing::ValuesIn(text_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace translution::testing
