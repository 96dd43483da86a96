#include "translution/ops/fused_vectors.h"

#include <ATen/ATen.h>

#include <memory>

#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution {

template <typename T>
typename kernels::VectorPasses<T>::Shape FusedVectors<T>::shape(const at::Tensor& table) const {
  return {call_.batch, call_.heads, call_.queries, call_.tokens, table.size(1) / call_.heads};
}

template <typename T>
template <typename Pass>
void FusedVectors<T>::for_queries(const at::Tensor& table, const Pass& pass) const {
  parallel_each(call_.queries, [&] {
    return [&, passes = std::make_shared<kernels::VectorPasses<T>>(
                   shape(table), call_.pairs->slots().data())](int64_t i) { pass(*passes, i); };
  });
}

template <typename T>
void FusedVectors<T>::add_scores(at::Tensor& maps) const {
  const auto x = readable(call_.terms.rel_q), table = call_.terms.table_k.contiguous();
  for_queries(table, [&](auto& passes, int64_t i) {
    passes.dots(i, data<T>(table), features<const T>(x), data<T>(maps));
  });
}

// [B,Nq,width]: for each query, the sum of the vectors of its pairs, weighted by a row of the map.
template <typename T>
at::Tensor FusedVectors<T>::sums(const at::Tensor& table, const at::Tensor& maps) const {
  const auto vectors = table.contiguous();
  auto out = large_empty({call_.batch, call_.queries, table.size(1)}, call_.options);
  for_queries(vectors, [&](auto& passes, int64_t i) {
    passes.sums(i, data<T>(vectors), data<T>(maps), features<T>(out));
  });
  return out;
}

// The work is split by channels, not by queries: pieces write to different channels, so there is
// nothing to merge, and one table is all the memory needed, even with a slot per pair.
template <typename T>
at::Tensor FusedVectors<T>::table_gradient(const at::Tensor& table, const at::Tensor& maps,
                                           const at::Tensor& x) const {
  constexpr int64_t kChannels = 32;
  const int64_t width = table.size(1) / call_.heads;
  const int64_t pieces = (width + kChannels - 1) / kChannels;  // per head
  auto dtable = large_zeros(table.sizes(), call_.options);
  parallel_each(call_.heads * pieces, [&] {
    return [&, passes = std::make_shared<kernels::VectorPasses<T>>(
                   shape(table), call_.pairs->slots().data())](int64_t piece) {
      const int64_t begin = piece % pieces * kChannels;
      passes->add_table_gradient(piece / pieces, begin, std::min(width, begin + kChannels),
                                 data<T>(maps), features<const T>(x), data<T>(dtable));
    };
  });
  return dtable;
}

template <typename T>
at::Tensor FusedVectors<T>::values(const at::Tensor& weights) const {
  return sums(call_.terms.table_v, weights);
}

template <typename T>
void FusedVectors<T>::values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                                      at::Tensor& d_maps, at::Tensor& dtable) const {
  const auto table = call_.terms.table_v.contiguous();
  const bool needed = call_.needs_grad(kTableV);
  if (!d_out.defined()) {
    if (needed) dtable = large_zeros(table.sizes(), call_.options);
    return;
  }
  const auto d = readable(d_out);
  for_queries(table, [&](auto& passes, int64_t i) {
    passes.dots(i, data<T>(table), features<const T>(d), data<T>(d_maps));
  });
  if (needed) dtable = table_gradient(table, weights, d);
}

template <typename T>
void FusedVectors<T>::scores_backward(const at::Tensor& d_scores, at::Tensor& dq,
                                      at::Tensor& dtable) const {
  const auto& table = call_.terms.table_k;
  if (call_.needs_grad(kRelQ)) dq = sums(table, d_scores);
  if (call_.needs_grad(kTableK))
    dtable = table_gradient(table, d_scores, readable(call_.terms.rel_q));
}

template class FusedVectors<float>;
template class FusedVectors<double>;

}  // namespace translution
