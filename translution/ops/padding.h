#pragma once

#include <ATen/ops/logical_not.h>
#include <ATen/ops/masked_fill.h>

namespace translution {

/// x [B,N,C] with zeros at padding, so that NaN or infinity there cannot reach other tokens. `mask`
/// is bool [B,N], true for a token. Returns x itself if the mask is undefined.
inline at::Tensor clear_padding(const at::Tensor& x, const at::Tensor& mask) {
  return mask.defined() ? x.masked_fill(mask.logical_not().unsqueeze(-1), 0) : x;
}

}  // namespace translution
