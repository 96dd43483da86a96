#pragma once

#include <ATen/ops/logical_not.h>
#include <ATen/ops/masked_fill.h>

namespace translution {

/// x [B,N,C] with zeros at padding, so that NaN or infinity there cannot reach other tokens. `mask`
/// is bool [B,N], true for a token. Returns x itself if the mask is undefined.
inline at::Tensor clear_padding(const at::Tensor& x, const at::Tensor& mask) {
  // LibTorch 1.13 has no logical_not on Meta. The shape is that of x.
  if (!mask.defined() || x.is_meta()) return x;
  return x.masked_fill(mask.logical_not().unsqueeze(-1), 0);
}

}  // namespace translution
