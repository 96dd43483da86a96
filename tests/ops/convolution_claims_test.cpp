// "Convolution is attention with score one inside the receptive field and zero outside."

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "tests/support/cases.h"
#include "tests/support/expect.h"
#include "translution/ops/convolution.h"

namespace translution::testing {
namespace {

constexpr int64_t B = 2, C = 3, O = 4;

// LibTorch's kernel [O,C,k…] reads x at p_i + u - r. Our slots [slots,C,O] are in ascending order
// of delta = p_i - p_j = r - u, which is the reverse order of u.
at::Tensor to_slots(const at::Tensor& kernel) {
  std::vector<int64_t> axes, order;
  for (int64_t axis = 2; axis < kernel.dim(); ++axis) axes.push_back(axis);
  order = axes;
  order.insert(order.end(), {1, 0});
  return kernel.flip(axes).permute(order).reshape({-1, C, O});
}

using Native = std::function<at::Tensor(const at::Tensor& image, const at::Tensor& kernel)>;

// Expects output and gradients of LibTorch's convolution on images [B,C,sides…].
void expect_native(const std::vector<int64_t>& grid, std::vector<int64_t> kernel_sides,
                   const std::string& pairs, const Native& native) {
  auto random = generator("convolution");
  std::vector<int64_t> image_shape{B, C}, kernel_shape{O, C};
  image_shape.insert(image_shape.end(), grid.begin(), grid.end());
  kernel_shape.insert(kernel_shape.end(), kernel_sides.begin(), kernel_sides.end());
  const auto image = normal(image_shape, random).requires_grad_(true);
  const auto kernel = normal(kernel_shape, random).requires_grad_(true);
  const auto expected = native(image, kernel).flatten(2).transpose(1, 2);  // [B,N,O]
  const auto got = convolution(image.flatten(2).transpose(1, 2), to_slots(kernel), {pairs});
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_LE(error(got, expected), kRounding);
  const auto weight = normal(expected.sizes(), random);
  const auto expected_grads = torch::autograd::grad({(expected * weight).sum()}, {image, kernel});
  const auto got_grads = torch::autograd::grad({(got * weight).sum()}, {image, kernel});
  for (const int n : {0, 1}) EXPECT_LE(error(got_grads[n], expected_grads[n]), kRounding) << n;
}

TEST(Claim, ScoresOfOneInsideA3x3WindowAreConv2d) {
  expect_native({5, 7}, {3, 3}, "5x7 window=1", [](const auto& image, const auto& kernel) {
    return at::conv2d(image, kernel, {}, 1, /*padding=*/1);
  });
}

TEST(Claim, ScoresOfOneInsideA5x5WindowAreConv2d) {
  expect_native({6, 4}, {5, 5}, "6x4 window=2", [](const auto& image, const auto& kernel) {
    return at::conv2d(image, kernel, {}, 1, /*padding=*/2);
  });
}

TEST(Claim, ScoresOfOneInsideA3x3x3WindowAreConv3d) {
  expect_native({3, 4, 2}, {3, 3, 3}, "3x4x2 window=1", [](const auto& image, const auto& kernel) {
    return at::conv3d(image, kernel, {}, 1, /*padding=*/1);
  });
}

TEST(Claim, ScoresOfOneOnThePastAreACausalConv1d) {
  const Native native = [](const auto& image, const auto& kernel) {
    return at::conv1d(at::constant_pad_nd(image, {3, 0}), kernel);
  };
  expect_native({9}, {4}, "9 causal window=3", native);
}

TEST(Claim, TranslutionWithEqualScoresInAWindowIsTheMeanOfAConvolution) {
  Config config;
  config.grid = {5, 4};
  config.sharing = Sharing::window;
  const Case c(config);
  auto inputs = c.inputs();
  inputs["q"] = at::zeros_like(inputs["q"]);
  const PairsName pairs{"5x4 window=1"};
  const auto ones = at::ones({1, config.tokens(), 1}, at::kDouble);
  const auto seen =
      convolution(ones, at::ones({9, 1, 1}, at::kDouble), pairs);  // tokens in the window
  EXPECT_EQ(seen.min().item<double>(), 4);
  EXPECT_EQ(seen.max().item<double>(), 9);
  EXPECT_LE(error(c.run(inputs) * seen, convolution(inputs["x"], inputs["v"], pairs)), kRounding);
}

}  // namespace
}  // namespace translution::testing
