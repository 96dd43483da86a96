#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// How the rows of a sum are split into shards. The split does not depend on the number of threads,
/// and so neither do the bits of the sum. One thread sums each shard; the sums of the shards are
/// added in order.
struct TRANSLUTION_API Shards {
  int64_t count, length;  ///< number of shards; rows of each, fewer (or none) in the last

  /// Splits a sum over `rows` rows of `width` numbers.
  Shards(int64_t rows, int64_t width);
};

/// Adds up the sums of the shards [count,width] in the first row.
template <typename T>
void merge_shards(T* sums, int64_t count, int64_t width);

/// x.sum(0) in an order that does not depend on the number of threads; differentiable. LibTorch
/// splits the columns by the number of threads, and the boundaries do not align with AVX-512
/// vectors, so its bits vary. For float and double on the CPU; otherwise this is LibTorch's sum.
TRANSLUTION_API at::Tensor sum_first(const at::Tensor& x);

/// x [B,…] plus `shared` […] for every sample. The gradient of `shared` is computed by sum_first.
TRANSLUTION_API at::Tensor add_shared(const at::Tensor& x, const at::Tensor& shared);

}  // namespace translution
