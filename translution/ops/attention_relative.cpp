#include "translution/ops/attention_relative.h"

#include <ATen/ATen.h>

#include "translution/ops/large.h"
#include "translution/ops/parallel.h"
#include "translution/ops/plan_cache.h"

namespace translution {
namespace {

using kernels::RelativePasses;
using kernels::SlotPlan;

// Encodings of fewer channels are never kept for backward.
constexpr int64_t kWideChannels = 64;

at::Tensor token_major(const at::Tensor& x) {  // [B,N,C] -> [N,B,C]
  return x.defined() ? x.transpose(0, 1).contiguous() : x;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
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

at::Tensor pair_major(const at::Tensor& map) { return map.permute({2, 3, 0, 1}).contiguous(); }

template <typename T>
FusedRelative<T>::FusedRelative(const FusedCall& call)
    : call_(call),
      rel_q_(call.pairwise() ? token_major(call.terms.rel_q) : at::Tensor()),
      rel_k_(same(call.terms.rel_q, call.terms.rel_k) ? rel_q_ : token_major(call.terms.rel_k)),
      rel_v_(same(call.terms.rel_k, call.terms.rel_v) ? rel_k_ : token_major(call.terms.rel_v)),
      table_q_(contiguous(call.terms.table_q)),
      table_k_(contiguous(call.terms.table_k)),
      table_v_(contiguous(call.terms.table_v)) {
  if (call.pairwise()) plan_ = slot_plan(call.setting.runs, call.size.batch, widest());
}

template <typename T>
kernels::Side<T> FusedRelative<T>::side(const at::Tensor& x, const at::Tensor& table) const {
  return {data<T>(x), data<T>(table), x.size(2), table.defined() ? table.size(2) : x.size(2)};
}

// Channels of the widest relative row.
template <typename T>
int64_t FusedRelative<T>::widest() const {
  int64_t width = 1;
  for (const auto& tensor : {rel_q_, rel_k_, rel_v_, table_q_, table_k_, table_v_})
    if (tensor.defined()) width = std::max(width, tensor.size(-1));
  return width;
}

template <typename T>
template <typename Pass>
void FusedRelative<T>::for_shards(const Pass& pass) const {
  const kernels::Sizes sizes{call_.size.batch, call_.size.tokens, call_.size.heads};
  parallel_each(SlotPlan::kShards, [&] {
    return [&, passes = std::make_shared<RelativePasses<T>>(*plan_, sizes)](int64_t shard) {
      pass(*passes, static_cast<int>(shard));
    };
  });
}

template <typename T>
at::Tensor FusedRelative<T>::scores(at::Tensor& kept) const {
  auto lanes = call_.new_lanes();
  if (!rel_q_.defined()) return lanes;
  const auto q = side(rel_q_, table_q_), k = side(rel_k_, table_k_);
  const int64_t count = kernels::kept_offsets(*plan_, call_.size.batch, q.width).back();
  // A number that took few products to make is made again sooner than it is read from memory.
  const bool worth_keeping = std::max(q.channels, k.channels) >= kWideChannels;
  if (worth_keeping && count * static_cast<int64_t>(sizeof(T)) <= call_.setting.workspace)
    kept = large_empty({count}, call_.options);
  for_shards(
      [&](auto& passes, int shard) { passes.scores(shard, q, k, data<T>(kept), data<T>(lanes)); });
  if (call_.setting.scale != 1) lanes.mul_(call_.setting.scale);
  return lanes;
}

template <typename T>
at::Tensor FusedRelative<T>::values(const at::Tensor& weights) const {
  if (!rel_v_.defined()) return at::empty({0}, call_.options);
  const auto v = side(rel_v_, table_v_);
  const auto lanes = pair_major(weights);
  auto out = large_zeros({SlotPlan::kShards, call_.size.queries, call_.size.batch, v.width},
                         call_.options);
  for_shards([&](auto& passes, int shard) {
    passes.values(shard, v, data<T>(lanes), out[shard].template data_ptr<T>());
  });
  return merge<T>(out).transpose(0, 1);
}

// Room for the gradients of one side, and what becomes of it when all shards are done.
template <typename T>
struct FusedRelative<T>::Gradient {
  kernels::Side<T> side;
  int term;               // of the features; the table's is the next
  at::Tensor own;         // accumulator [shards, N, B, C]
  const at::Tensor& sum;  // the accumulator used: `own`, or the one joined with other sides
  at::Tensor dtable;
  std::vector<char> written;

  Gradient(const FusedRelative& relative, const at::Tensor& x, const at::Tensor& table, int term,
           at::Tensor* joined)
      : side(relative.side(x, table)), term(term), sum(joined ? *joined : own) {
    const FusedCall& call = relative.call_;
    const bool wanted = joined ? !joined->defined() : call.wants(term);
    if (wanted)
      (joined ? *joined : own) =
          large_zeros({SlotPlan::kShards, x.size(0), x.size(1), x.size(2)}, x.options());
    if (call.wants(term + 1) && table.defined()) {
      dtable = large_empty(table.sizes(), table.options());
      written.assign(table.size(0), 0);
    }
  }

  kernels::SideGradient<T> of(int shard) {
    return {sum.defined() ? sum[shard].template data_ptr<T>() : nullptr, data<T>(dtable),
            written.data()};
  }

  void finish(TermGradients& grads) {
    if (own.defined()) grads[term] = merge<T>(own).transpose(0, 1);
    for (size_t slot = 0; slot < written.size(); ++slot)
      if (!written[slot]) dtable[static_cast<int64_t>(slot)].zero_();
    grads[term + 1] = dtable;
  }
};

template <typename T>
at::Tensor FusedRelative<T>::values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                                             TermGradients& grads) {
  auto d_lanes = call_.new_lanes();
  if (!rel_v_.defined()) return d_lanes;
  Gradient dv(*this, rel_v_, table_v_, kRelV, call_.needs & kJoinV ? &joined_ : nullptr);
  if (d_out.defined()) {
    const auto d = token_major(d_out), lanes = pair_major(weights);
    for_shards([&](auto& passes, int shard) {
      passes.values_backward(shard, dv.side, data<T>(lanes), data<T>(d), data<T>(d_lanes),
                             dv.of(shard));
    });
  }
  dv.finish(grads);
  return d_lanes;
}

template <typename T>
void FusedRelative<T>::scores_backward(const at::Tensor& d_scores, const at::Tensor& kept,
                                       TermGradients& grads) {
  if (rel_q_.defined()) {
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
  if (joined_.defined()) grads[kRelQ] = merge<T>(joined_).transpose(0, 1);
}

template class FusedRelative<float>;
template class FusedRelative<double>;

}  // namespace translution
