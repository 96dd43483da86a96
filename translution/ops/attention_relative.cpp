#include "translution/ops/attention_relative.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "translution/ops/large.h"
#include "translution/ops/parallel.h"
#include "translution/ops/plan_cache.h"
#include "translution/ops/workspace.h"

namespace translution {
namespace {

using kernels::RelativePasses;
using kernels::SlotPlan;

// x [rows,cols] -> [cols,rows], as T and in memory.
template <typename T>
at::Tensor turned(const at::Tensor& x, int64_t rows, int64_t cols) {
  const auto& ops = kernels::row_ops<T>();
  auto out = large_empty({cols, rows}, x.options());
  at::parallel_for(0, cols, 256, [&](int64_t begin, int64_t end) {
    ops.transpose(data<T>(x) + begin, rows, cols, end - begin, 1, 0, data<T>(out) + begin * rows,
                  rows);
  });
  return out;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

template <typename T>
T* zeros_of(const at::Tensor& shards, int shard) {
  const int64_t count = shards.numel() / SlotPlan::kShards;
  return std::fill_n(data<T>(shards) + shard * count, count, T(0)) - count;
}

// The sum of the shards' accumulators, always in the same order: [shards, …] -> […].
template <typename T>
at::Tensor merge(const at::Tensor& shards) {
  auto sum = shards[0];
  const int64_t count = sum.numel();
  const auto& ops = kernels::row_ops<T>();
  at::parallel_for(0, count, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t shard = 1; shard < SlotPlan::kShards; ++shard)
      ops.add(data<T>(shards) + shard * count + begin, end - begin, data<T>(sum) + begin);
  });
  return sum;
}

}  // namespace

template <typename T>
FusedRelative<T>::FusedRelative(const FusedCall& call)
    : call_(call),
      rel_q_(call.pairwise() ? arrange(call.terms.rel_q) : Features()),
      rel_k_(same(call.terms.rel_q, call.terms.rel_k) ? rel_q_ : arrange(call.terms.rel_k)),
      rel_v_(same(call.terms.rel_k, call.terms.rel_v) ? rel_k_ : arrange(call.terms.rel_v)),
      table_q_(contiguous(call.terms.table_q)),
      table_k_(contiguous(call.terms.table_k)),
      table_v_(contiguous(call.terms.table_v)) {
  if (call.pairwise()) plan_ = slot_plan(call.setting.runs, call.size.batch, call.relative_width());
}

template <typename T>
typename FusedRelative<T>::Features FusedRelative<T>::arrange(const at::Tensor& x) const {
  if (!x.defined()) return {};
  const bool beside = call_.batch_last() && call_.needs != 0;
  return {tokens_first(x), beside ? x.transpose(0, 1).contiguous() : at::Tensor()};
}

// [B,N,C] -> [N,B,C] or [N,C,B]
template <typename T>
at::Tensor FusedRelative<T>::tokens_first(const at::Tensor& x) const {
  if (!call_.batch_last()) return x.transpose(0, 1).contiguous();
  const int64_t B = x.size(0), N = x.size(1), C = x.size(2);
  return turned<T>(x.contiguous(), B, N * C).view({N, C, B});
}

// and back
template <typename T>
at::Tensor FusedRelative<T>::batch_first(const at::Tensor& x) const {
  if (!call_.batch_last()) return x.transpose(0, 1);
  const int64_t N = x.size(0), C = x.size(1), B = x.size(2);
  return turned<T>(x, N * C, B).view({B, N, C});
}

template <typename T>
kernels::Side<T> FusedRelative<T>::side(const Features& features, const at::Tensor& table) const {
  const int64_t channels = features.x.size(call_.batch_last() ? 1 : 2);
  return {data<T>(features.x), data<T>(table), channels, table.defined() ? table.size(2) : channels,
          data<T>(features.rows)};
}

// An accumulator for each shard, which fills its own with zeros.
template <typename T>
at::Tensor FusedRelative<T>::new_sums(int64_t tokens, int64_t channels) const {
  const int64_t B = call_.size.batch;
  return call_.batch_last() ? large_empty({SlotPlan::kShards, tokens, channels, B}, call_.options)
                            : large_empty({SlotPlan::kShards, tokens, B, channels}, call_.options);
}

template <typename T>
template <typename Pass>
void FusedRelative<T>::for_shards(const Pass& pass) const {
  const kernels::Sizes sizes{call_.size.batch, call_.size.tokens, call_.size.heads,
                             call_.batch_last()};
  parallel_each(SlotPlan::kShards, [&] {
    return [&, passes = std::make_shared<RelativePasses<T>>(*plan_, sizes)](int64_t shard) {
      pass(*passes, static_cast<int>(shard));
    };
  });
}

template <typename T>
at::Tensor FusedRelative<T>::scores(at::Tensor& kept) const {
  auto lanes = call_.new_lanes();
  if (!rel_q_.x.defined()) return lanes.zero_();
  const auto q = side(rel_q_, table_q_), k = side(rel_k_, table_k_);
  const int64_t count = kernels::kept_offsets(*plan_, call_.size.batch, q.width).back();
  // A number that took few products to make is made again sooner than it is read from memory.
  const bool worth_keeping = std::max(q.channels, k.channels) >= kWideChannels;
  if (worth_keeping && count * static_cast<int64_t>(sizeof(T)) <= call_.setting.workspace)
    kept = large_empty({count}, call_.options);
  for_shards(
      [&](auto& passes, int shard) { passes.scores(shard, q, k, data<T>(kept), data<T>(lanes)); });
  return lanes;
}

template <typename T>
at::Tensor FusedRelative<T>::values(const at::Tensor& weights) const {
  if (!rel_v_.x.defined()) return at::empty({0}, call_.options);
  const auto v = side(rel_v_, table_v_);
  const auto lanes = call_.as_lanes(weights).contiguous();
  auto out = new_sums(call_.size.queries, v.width);
  for_shards([&](auto& passes, int shard) {
    passes.values(shard, v, data<T>(lanes), zeros_of<T>(out, shard));
  });
  return batch_first(merge<T>(out));
}

// Room for the gradients of one side, and what becomes of it when all shards are done.
template <typename T>
struct FusedRelative<T>::Gradient {
  const FusedRelative& relative;
  kernels::Side<T> side;
  int term;               // of the features; the table's is the next
  at::Tensor own;         // accumulator
  const at::Tensor& sum;  // the accumulator used: `own`, or the one joined with other sides
  bool first;             // to add to it
  at::Tensor dtable;
  std::vector<char> written;

  Gradient(const FusedRelative& relative, const Features& features, const at::Tensor& table,
           int term, at::Tensor* joined)
      : relative(relative),
        side(relative.side(features, table)),
        term(term),
        sum(joined ? *joined : own),
        first(joined ? !joined->defined() : relative.call_.wants(term)) {
    const FusedCall& call = relative.call_;
    if (first) (joined ? *joined : own) = relative.new_sums(features.x.size(0), side.channels);
    if (call.wants(term + 1) && table.defined()) {
      dtable = large_empty(table.sizes(), table.options());
      written.assign(table.size(0), 0);
    }
  }

  kernels::SideGradient<T> of(int shard) {
    T* const dx = first           ? zeros_of<T>(sum, shard)
                  : sum.defined() ? sum[shard].template data_ptr<T>()
                                  : nullptr;
    return {dx, data<T>(dtable), written.data()};
  }

  void finish(TermGradients& grads) {
    if (own.defined()) grads[term] = relative.batch_first(merge<T>(own));
    for (size_t slot = 0; slot < written.size(); ++slot)
      if (!written[slot]) dtable[static_cast<int64_t>(slot)].zero_();
    grads[term + 1] = dtable;
  }
};

template <typename T>
at::Tensor FusedRelative<T>::values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                                             TermGradients& grads) {
  auto d_lanes = call_.new_lanes();
  if (!rel_v_.x.defined()) return d_lanes.zero_();
  Gradient dv(*this, rel_v_, table_v_, kRelV, call_.needs & kJoinV ? &joined_ : nullptr);
  const auto lanes = call_.as_lanes(weights).contiguous();
  const auto d = tokens_first(
      d_out.defined()
          ? d_out
          : at::zeros({call_.size.batch, call_.size.queries, dv.side.width}, call_.options));
  for_shards([&](auto& passes, int shard) {
    passes.values_backward(shard, dv.side, data<T>(lanes), data<T>(d), data<T>(d_lanes),
                           dv.of(shard));
  });
  dv.finish(grads);
  return d_lanes;
}

template <typename T>
void FusedRelative<T>::scores_backward(const at::Tensor& d_scores, const at::Tensor& kept,
                                       TermGradients& grads) {
  if (rel_q_.x.defined()) {
    const bool joins = (call_.needs & (kJoinK | kJoinV)) != 0;
    Gradient dq(*this, rel_q_, table_q_, kRelQ, joins ? &joined_ : nullptr);
    Gradient dk(*this, rel_k_, table_k_, kRelK, call_.needs & kJoinK ? &joined_ : nullptr);
    for_shards([&](auto& passes, int shard) {
      passes.scores_backward(shard, dq.side, dk.side, data<T>(kept), data<T>(d_scores),
                             dq.of(shard), dk.of(shard));
    });
    dq.finish(grads);
    dk.finish(grads);
  }
  if (joined_.defined()) grads[kRelQ] = batch_first(merge<T>(joined_));
}

template class FusedRelative<float>;
template class FusedRelative<double>;

}  // namespace translution
