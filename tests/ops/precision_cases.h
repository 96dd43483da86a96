#pragma once

#include <ATen/ATen.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/support/cases.h"

namespace translution::testing {

/// Tokens, batch and widths that are not multiples of a tile.
struct PrecisionLayout {
  const char* name;
  std::vector<int64_t> grid;
  bool cls = false, causal = false;
  int64_t B = 3, C = 26, H = 2, D = 13, R = 5;
  std::vector<int64_t> rows = {};
  Encoding encoding = Encoding::relative;
  Sharing sharing = Sharing::none;
  int64_t radius = 1;
  bool mask_only = false;
};

/// Prints the parameter of a failing test.
inline void PrintTo(const PrecisionLayout& layout, std::ostream* out) { *out << layout.name; }

/// With 16 or more samples, narrow layers are stored with the batch last.
const std::vector<PrecisionLayout>& precision_layouts();
/// Every method with the options that change its products.
std::vector<Config> precision_choices();
/// The config on this layout, with precision bf16.
Config with_layout(Config config, const PrecisionLayout& layout);

/// Output, map and gradients by name.
template <typename Attend>
Inputs quantities_of(const Inputs& inputs, const Attend& attend, const at::Tensor& d_out) {
  Inputs leaves, all;
  for (const auto& [name, tensor] : inputs) leaves[name] = tensor.detach().requires_grad_(true);
  const MethodResult result = attend(leaves);
  result.out.backward(d_out.to(result.out.scalar_type()));
  all["out"] = result.out.detach();
  if (result.map.defined()) all["map"] = result.map.detach();
  for (const auto& [name, leaf] : leaves)
    if (leaf.grad().defined()) all["d " + name] = leaf.grad();
  return all;
}

/// A projection with two weights, the second twice as wide.
struct Bf16Projection {
  int64_t rows, in, out;
  bool transposed, biased;

  std::string str() const;
  Inputs inputs() const;
  /// Both results, concatenated.
  at::Tensor ours(const Inputs& in) const;
  at::Tensor plain(const Inputs& in, rounded_oracle::Rounding rounding) const;
};

}  // namespace translution::testing
