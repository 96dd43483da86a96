#pragma once

#include "translution/nn/attention.h"

namespace translution {

/// The layer in the benchmarks: 7x7 patches and a class token, 192 channels, 3 heads of 64.
constexpr int64_t kDim = 192, kHeads = 3, kDimHead = 64, kSide = 7, kTokens = kSide * kSide + 1;

inline Attention make_layer(Method method) {
  Position position;
  position.method = method;
  return Attention(AttentionOptions(kDim)
                       .heads(kHeads)
                       .dim_head(kDimHead)
                       .grid({kSide, kSide})
                       .cls(true)
                       .position(position));
}

inline torch::Tensor random_tokens(int64_t batch) { return torch::randn({batch, kTokens, kDim}); }

}  // namespace translution
