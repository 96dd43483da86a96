#pragma once

#include <ATen/ATen.h>

namespace translution::testing {

/// The same values, with the last dimension outermost in memory.
inline at::Tensor columns_first(const at::Tensor& t) {
  return t.dim() < 2 ? t : t.transpose(0, -1).contiguous().transpose(0, -1);
}

/// The same values, with a gap after each.
inline at::Tensor every_second(const at::Tensor& t) {
  return at::stack({t, at::full_like(t, 1e30)}, -1).select(-1, 0);
}

/// The same values, starting one element after an aligned address.
inline at::Tensor misaligned(const at::Tensor& t) {
  return at::cat({t.new_zeros({1}), t.reshape(-1)}).narrow(0, 1, t.numel()).view(t.sizes());
}

}  // namespace translution::testing
