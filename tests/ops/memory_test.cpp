// The ops never allocate an N x N x C x C' tensor of gathered matrices. They allocate a
// B x N x N x C' tensor of encodings only if the workspace allows it.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <string>

#include "tests/support/cases.h"
#include "tests/support/peak_memory.h"
#include "translution/nn/points.h"
#include "translution/ops/attention.h"

namespace translution::testing {
namespace {

constexpr int64_t B = 16, N = 197, C = 64, R = 32;  // 14 x 14 patches and the class token

struct Layer {
  AttentionTerms terms;
  AttentionCall call;
  std::vector<at::Tensor> leaves;

  Layer(const std::string& name, int64_t channels, int64_t width, bool content) {
    OffsetOptions offsets;
    offsets.grid = {14, 14};
    offsets.cls = true;
    const OffsetTable table(offsets);
    call.pairs.text = pairs_text(offsets);
    call.workspace = 0;
    auto random = generator(name);
    const auto leaf = [&](at::IntArrayRef shape) {
      leaves.push_back(at::empty(shape, at::kFloat).normal_(0, 0.1, random).requires_grad_(true));
      return leaves.back();
    };
    terms.rel_q = terms.rel_k = terms.rel_v = leaf({B, N, channels});
    for (auto* role : {&terms.table_q, &terms.table_k, &terms.table_v})
      *role = leaf({table.num_slots(), channels, width});
    if (content)
      for (auto* role : {&terms.q, &terms.k, &terms.v}) *role = leaf({B, N, C});
  }

  std::vector<at::Tensor> train() const {
    const auto result = attention(terms, call);
    auto loss = result.relative_out.sum();
    if (terms.v.defined()) loss = loss + result.out.sum();
    return torch::autograd::grad({loss}, leaves);
  }
};

void expect_small(const Layer& layer, int64_t width) {
  const double growth = peak_growth([&] { layer.train(); });
  if (growth < 0) GTEST_SKIP() << "/proc does not report peak memory";
  const double encodings = static_cast<double>(B * N * N * width) * 4 / kMegabyte;
  std::printf("peak growth %.0f MB; the encodings of all pairs are %.0f MB per role\n", growth,
              encodings);
  EXPECT_GT(growth, 1);  // at least the gradients
  EXPECT_LT(growth, encodings);
}

TEST(Memory, TranslutionTrainsInLessThanOneTensorOfEncodings) {
  expect_small(Layer("translution memory", C, C, /*content=*/false), C);
}

TEST(Memory, AlphaTrainsInLessThanOneTensorOfSmallEncodings) {
  expect_small(Layer("alpha memory", R, R, /*content=*/true), R);
}

// All pairs of points, with gradients of positions and spacing.
void expect_small_between_points(Method method) {
  constexpr int64_t kPoints = 1024, kDim = 192;
  Position position;
  position.method = method;
  PointOptions lattice;
  lattice.axes = 2, lattice.spacing = {0.5}, lattice.learn_spacing = true;
  PointAttention layer(AttentionOptions(kDim).heads(3).position(position), lattice);
  const auto x = at::randn({kPoints, kDim}).requires_grad_(true),
             positions = at::rand({kPoints, 2}).requires_grad_(true);
  const double growth =
      peak_growth([&] { layer->forward(x, {positions}).square().sum().backward(); });
  if (growth < 0) GTEST_SKIP() << "/proc does not report peak memory";
  const double rows = static_cast<double>(kPoints * kPoints * kDim) * 4 / kMegabyte;
  std::printf("peak growth %.0f MB; a row of every pair takes %.0f MB\n", growth, rows);
  EXPECT_GT(growth, 1);
  EXPECT_LT(growth, 0.5 * rows);
}

TEST(Memory, TranslutionBetweenPointsTrainsInLessThanHalfOfARowOfEveryPair) {
  expect_small_between_points(Method::translution);
}

TEST(Memory, AlphaBetweenPointsTrainsInLessThanHalfOfARowOfEveryPair) {
  expect_small_between_points(Method::alpha_translution);
}

TEST(Memory, PeakGrowthMeasuresATensor) {
  const double growth = peak_growth([] { at::ones({25'000'000}, at::kFloat); });
  if (growth < 0) GTEST_SKIP() << "/proc does not report peak memory";
  EXPECT_GT(growth, 95);
  EXPECT_LT(growth, 110);
}

TEST(Memory, SavedEncodingsFitTheWorkspaceAndDoNotChangeGradients) {
  Layer layer("kept", /*channels=*/64, /*width=*/8, /*content=*/false);
  const auto expected = layer.train();
  for (const int64_t workspace : {int64_t{0}, int64_t{1} << 20, int64_t{1} << 40}) {
    layer.call.workspace = workspace;
    EXPECT_LE(static_cast<int64_t>(attention(layer.terms, layer.call).kept.nbytes()), workspace);
    EXPECT_EQ(attention(layer.terms, layer.call).kept.numel() > 0, workspace > 1 << 20);
    const auto got = layer.train();
    for (size_t n = 0; n < expected.size(); ++n)
      EXPECT_TRUE(at::equal(got[n], expected[n])) << "workspace " << workspace << ", leaf " << n;
  }
}

}  // namespace
}  // namespace translution::testing
