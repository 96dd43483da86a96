#include "translution/ops/fused_content.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "translution/kernels/content_bf16.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

constexpr int64_t kPairs = 256;  // pairs that are transposed at a time, between lanes and maps

}  // namespace

// Calls pass(passes, begin, end) on ranges of items, one item per sample and head. Each thread has
// its own `Passes`.
template <typename T>
template <typename Passes, typename Pass>
void FusedContent<T>::for_items_with(const Pass& pass) const {
  const auto& q = call_.terms.q;
  const typename Passes::Shape shape{call_.heads, call_.queries, call_.tokens,
                                     q.defined() ? q.size(2) / call_.heads : 0,
                                     call_.out_width / call_.heads};
  const int64_t items = call_.lane_count();
  const int64_t length = std::clamp<int64_t>(items / 8, 1, 8);  // items of a range
  parallel_each((items + length - 1) / length, [&] {
    return [&, passes = std::make_shared<Passes>(shape)](int64_t part) {
      pass(*passes, part * length, std::min(items, (part + 1) * length));
    };
  });
}

template <typename T>
template <typename Pass>
void FusedContent<T>::for_items(const Pass& pass) const {
  if constexpr (std::is_same_v<T, float>)
    if (call_.bf16) return for_items_with<kernels::Bf16ContentPasses>(pass);
  for_items_with<kernels::ContentPasses<T>>(pass);
}

template <typename T>
at::Tensor FusedContent<T>::scores() const {
  if (!call_.terms.q.defined()) return {};
  const auto q = readable(call_.terms.q), k = readable(call_.terms.k);
  auto maps = call_.new_maps();
  for_items([&](auto& passes, int64_t begin, int64_t end) {
    passes.scores(begin, end, features<const T>(q), features<const T>(k), data<T>(maps));
  });
  return maps;
}

template <typename T>
at::Tensor FusedContent<T>::values(const at::Tensor& weights) const {
  if (!call_.terms.v.defined()) return at::empty({0}, call_.options);
  const auto v = readable(call_.terms.v), maps = to_maps(weights);
  auto out = large_empty({call_.batch, call_.queries, call_.out_width}, call_.options);
  for_items([&](auto& passes, int64_t begin, int64_t end) {
    passes.values(begin, end, data<T>(maps), features<const T>(v), features<T>(out));
  });
  return out;
}

template <typename T>
at::Tensor FusedContent<T>::values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                                            at::Tensor& dv) const {
  auto d_maps = call_.new_maps();
  if (!d_out.defined()) return d_maps.zero_();
  const auto v = readable(call_.terms.v), d = readable(d_out), maps = to_maps(weights);
  if (call_.needs_grad(kV)) dv = large_empty(v.sizes(), call_.options);
  for_items([&](auto& passes, int64_t begin, int64_t end) {
    passes.values_backward(begin, end, data<T>(maps), features<const T>(v), features<const T>(d),
                           data<T>(d_maps), features<T>(dv));
  });
  return d_maps;
}

template <typename T>
void FusedContent<T>::scores_backward(const at::Tensor& d_scores, at::Tensor& dq,
                                      at::Tensor& dk) const {
  const auto q = readable(call_.terms.q), k = readable(call_.terms.k);
  if (call_.needs_grad(kQ)) dq = large_empty(q.sizes(), call_.options);
  if (call_.needs_grad(kK)) dk = large_empty(k.sizes(), call_.options);
  for_items([&](auto& passes, int64_t begin, int64_t end) {
    passes.scores_backward(begin, end, features<const T>(q), features<const T>(k),
                           data<T>(d_scores), features<T>(dq), features<T>(dk));
  });
}

// Calls work(first pair, number of pairs, part, parts) on blocks, to transpose between lanes
// [pairs, parts, lanes] and maps [lanes, parts, pairs]. Block boundaries do not depend on the
// number of threads, because the remainder of a block may round differently.
template <typename T>
template <typename Work>
void FusedContent<T>::for_blocks(const Work& work) const {
  const int64_t pairs = call_.pair_count(), parts = call_.batch_last ? call_.heads : 1;
  parallel_ranges((pairs + kPairs - 1) / kPairs, 1, [&](int64_t first, int64_t last) {
    for (int64_t pair = first * kPairs; pair < std::min(last * kPairs, pairs); pair += kPairs)
      for (int64_t part = 0; part < parts; ++part)
        work(pair, std::min(kPairs, pairs - pair), part, parts);
  });
}

template <typename T>
void FusedContent<T>::add_maps(const at::Tensor& maps, double alpha, double beta,
                               at::Tensor& lanes) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t count = call_.lane_count(), pairs = call_.pair_count();
  for_blocks([&](int64_t pair, int64_t length, int64_t part, int64_t parts) {
    ops.transpose(data<T>(maps) + part * pairs + pair, count / parts, parts * pairs, length,
                  static_cast<T>(alpha), static_cast<T>(beta),
                  data<T>(lanes) + pair * count + part * (count / parts), count);
  });
}

template <typename T>
at::Tensor FusedContent<T>::to_maps(const at::Tensor& map) const {
  if (map.is_contiguous() || !call_.as_lanes(map).is_contiguous()) return map.contiguous();
  const auto& ops = kernels::row_ops<T>();
  const int64_t count = call_.lane_count(), pairs = call_.pair_count();
  auto maps = call_.new_maps();
  for_blocks([&](int64_t pair, int64_t length, int64_t part, int64_t parts) {
    ops.transpose(data<T>(map) + pair * count + part * (count / parts), length, count,
                  count / parts, 1, 0, data<T>(maps) + part * pairs + pair, parts * pairs);
  });
  return maps;
}

template class FusedContent<float>;
template class FusedContent<double>;

}  // namespace translution
