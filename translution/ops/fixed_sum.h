#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// How the rows of a sum are cut: the same for any number of threads, so that the bits are too.
/// Each shard is summed by one thread, and the sums of the shards are added in their order.
struct TRANSLUTION_API Shards {
  int64_t count, length;  ///< the last one may be shorter or empty

  /// For sums of `width` numbers over so many rows.
  Shards(int64_t rows, int64_t width);
};

/// Adds the shards [count,width] to the first of them.
template <typename T>
void merge_shards(T* sums, int64_t count, int64_t width);

/// x.sum(0), an op with a gradient, in an order that does not depend on the number of threads.
/// LibTorch cuts the columns by the number of threads, and the vectors of AVX-512 do not fit the
/// cuts. Float and double on the CPU; otherwise LibTorch's sum.
TRANSLUTION_API at::Tensor sum_first(const at::Tensor& x);

/// x [B,…] plus `shared` […], which is the same for all samples: its gradient is such a sum.
TRANSLUTION_API at::Tensor add_shared(const at::Tensor& x, const at::Tensor& shared);

}  // namespace translution
