#include "translution/ops/attention_cpu.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <limits>
#include <memory>

#include "translution/kernels/content.h"
#include "translution/kernels/relative.h"
#include "translution/ops/implementation.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"
#include "translution/ops/plan_cache.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

using kernels::RelativePasses;
using kernels::SlotPlan;

at::Tensor token_major(const at::Tensor& x) {  // [B,N,C] -> [N,B,C]
  return x.defined() ? x.transpose(0, 1).contiguous() : x;
}

at::Tensor pair_major(const at::Tensor& map) {  // [B,H,Nq,N] -> [Nq,N,B,H]
  return map.permute({2, 3, 0, 1}).contiguous();
}

at::Tensor contiguous(const at::Tensor& x) { return x.defined() ? x.contiguous() : x; }

template <typename T>
T* data(const at::Tensor& x) {
  return x.defined() && x.numel() > 0 ? x.data_ptr<T>() : nullptr;
}

// Features whose rows the content kernels can read: as they are, or else a copy.
at::Tensor readable(const at::Tensor& x) {
  const bool in_order = x.defined() && x.stride(2) == 1 && x.stride(1) >= x.size(2);
  return in_order ? x : contiguous(x);
}

template <typename T>
kernels::Features<T> features(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {data<std::remove_const_t<T>>(x), x.stride(0), x.stride(1)};
}

// 1 where row i may see token j.
std::vector<char> open_pairs(const AttentionSetting& setting, const AttentionSizes& size) {
  std::vector<char> open(size.queries * size.tokens, setting.runs.defined() ? 0 : 1);
  if (setting.runs.defined())
    for (const Run& run : runs_from_tensor(setting.runs))
      for (int64_t t = 0; t < run.length; ++t)
        open[(run.i + t * run.di) * size.tokens + run.j + t * run.dj] = 1;
  if (!setting.causal) return open;
  const auto rows = setting.rows.defined() ? setting.rows.to(at::kCPU).contiguous() : at::Tensor();
  for (int64_t i = 0; i < size.queries; ++i) {
    const int64_t row = rows.defined() ? rows.data_ptr<int64_t>()[i] : i;
    for (int64_t j = row + 1; j < size.tokens; ++j) open[i * size.tokens + j] = 0;
  }
  return open;
}

// Encodings of fewer channels are never kept for backward.
constexpr int64_t kWideChannels = 64;

// One call: its sizes, its plan, and the passes over slots and heads, each spread over the threads.
template <typename T>
class Fused {
 public:
  Fused(const AttentionTerms& terms, const AttentionSetting& setting)
      : terms_(terms),
        setting_(setting),
        size_(attention_sizes(terms, setting)),
        options_(at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value)),
        rel_q_(token_major(terms.rel_q)),
        rel_k_(same(terms.rel_q, terms.rel_k) ? rel_q_ : token_major(terms.rel_k)),
        rel_v_(same(terms.rel_k, terms.rel_v) ? rel_k_ : token_major(terms.rel_v)),
        table_q_(contiguous(terms.table_q)),
        table_k_(contiguous(terms.table_k)),
        table_v_(contiguous(terms.table_v)),
        open_(open_pairs(setting, size_)) {
    if (pairwise())
      plan_ = slot_plan(setting.runs, size_.batch, widest());
  }

  AttentionResult forward() {
    AttentionResult result;
    auto scores = content_scores();  // [B,H,Nq,N]; undefined without content
    if (pairwise()) {
      auto lanes = relative_scores(result.kept);  // [Nq,N,B,H], with content added
      if (scores.defined()) add_maps(scores, setting_.scale, lanes);
      softmax_lanes(lanes);
      result.attention = lanes.permute({2, 3, 0, 1});
    } else {
      softmax_maps(scores);
      result.attention = scores;
    }
    if (!result.kept.defined()) result.kept = at::empty({0}, options_);
    const auto weights = with_keep(result.attention);
    result.out = content_values(weights);
    result.relative_out = relative_values(weights);
    return result;
  }

  TermGradients backward(const at::Tensor& d_out, const at::Tensor& d_relative_out,
                         const at::Tensor& attention, const at::Tensor& kept, int64_t needs) {
    TermGradients grads;
    needs_ = needs;
    const auto weights = with_keep(attention);
    at::Tensor joined;  // accumulator of the features that are one tensor
    at::Tensor d_maps, d_lanes;
    if (terms_.v.defined()) d_maps = content_values_backward(weights, d_out, grads[kV]);
    if (rel_v_.defined()) {
      Gradient dv(*this, rel_v_, table_v_, kRelV, needs & kJoinV ? &joined : nullptr);
      d_lanes = relative_values_backward(weights, d_relative_out, dv);
      dv.finish(grads);
    }
    if (pairwise()) {
      if (!d_lanes.defined()) d_lanes = lanes_buffer();
      if (d_maps.defined()) add_maps(d_maps, 1, d_lanes);
      if (setting_.keep.defined()) d_lanes.mul_(pair_major(setting_.keep));
      softmax_lanes_backward(pair_major(attention), d_lanes);
      if (terms_.q.defined()) d_maps = to_maps(d_lanes.permute({2, 3, 0, 1}));
    } else {
      if (setting_.keep.defined()) d_maps.mul_(setting_.keep);
      softmax_maps_backward(attention.contiguous(), d_maps);
      if (terms_.bias.defined()) {
        if (wants(kBias)) grads[kBias] = bias_gradient(d_maps);
        d_maps.mul_(setting_.scale);
      }
    }
    if (terms_.q.defined()) content_scores_backward(d_maps, grads[kQ], grads[kK]);
    if (rel_q_.defined()) {
      const bool joins = (needs & (kJoinK | kJoinV)) != 0;
      Gradient dq(*this, rel_q_, table_q_, kRelQ, joins ? &joined : nullptr);
      Gradient dk(*this, rel_k_, table_k_, kRelK, needs & kJoinK ? &joined : nullptr);
      relative_scores_backward(d_lanes, kept, dq, dk);
      dq.finish(grads);
      dk.finish(grads);
    }
    if (joined.defined()) grads[kRelQ] = merge(joined).transpose(0, 1);
    return grads;
  }

 private:
  static bool same(const at::Tensor& a, const at::Tensor& b) {
    return a.defined() && b.defined() && a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() &&
           a.strides() == b.strides();
  }

  bool wants(int term) const { return ((needs_ >> term) & 1) != 0; }

  // Are there relative matrices, so that scores are kept pair by pair?
  bool pairwise() const { return rel_q_.defined() || rel_v_.defined(); }
  kernels::Sizes kernel_sizes() const { return {size_.batch, size_.tokens, size_.heads}; }
  // A lane of a pair, or the item whose map it lies in: one sample and head.
  int64_t lane_count() const { return size_.batch * size_.heads; }
  int64_t pair_count() const { return size_.queries * size_.tokens; }

  kernels::Side<T> side(const at::Tensor& x, const at::Tensor& table) const {
    return {data<T>(x), data<T>(table), x.size(2), table.defined() ? table.size(2) : x.size(2)};
  }

  // Channels of the widest relative row.
  int64_t widest() const {
    int64_t width = 1;
    for (const auto& tensor : {rel_q_, rel_k_, rel_v_, table_q_, table_k_, table_v_})
      if (tensor.defined()) width = std::max(width, tensor.size(-1));
    return width;
  }

  at::Tensor lanes_buffer() const {
    return large_zeros({size_.queries, size_.tokens, size_.batch, size_.heads}, options_);
  }

  at::Tensor with_keep(const at::Tensor& attention) const {
    return setting_.keep.defined() ? attention * setting_.keep : attention;
  }

  template <typename Pass>
  void for_shards(const Pass& pass) const {
    parallel_each(SlotPlan::kShards, [&] {
      return [&, passes = std::make_shared<RelativePasses<T>>(*plan_, kernel_sizes())](
                 int64_t shard) { pass(*passes, static_cast<int>(shard)); };
    });
  }

  // The sum of the shards' accumulators, always in the same order: [shards, …] -> […].
  at::Tensor merge(const at::Tensor& shards) const {
    auto sum = shards[0];
    const int64_t count = sum.numel();
    const auto& ops = kernels::row_ops<T>();
    at::parallel_for(0, count, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t shard = 1; shard < SlotPlan::kShards; ++shard)
        ops.add(data<T>(shards) + shard * count + begin, end - begin, data<T>(sum) + begin);
    });
    return sum;
  }

  // --- softmax

  void softmax_lanes(at::Tensor& lanes) const {
    const auto& ops = kernels::row_ops<T>();
    const int64_t row = size_.tokens * lane_count();
    at::parallel_for(0, size_.queries, 1, [&](int64_t begin, int64_t end) {
      std::vector<T> scratch(2 * lane_count());
      for (int64_t i = begin; i < end; ++i)
        ops.softmax_lanes(data<T>(lanes) + i * row, open_.data() + i * size_.tokens, size_.tokens,
                          lane_count(), scratch.data());
    });
  }

  void softmax_lanes_backward(const at::Tensor& p, at::Tensor& dp) const {
    const auto& ops = kernels::row_ops<T>();
    const int64_t row = size_.tokens * lane_count();
    at::parallel_for(0, size_.queries, 1, [&](int64_t begin, int64_t end) {
      std::vector<T> scratch(lane_count());
      for (int64_t i = begin; i < end; ++i)
        ops.softmax_lanes_backward(data<T>(p) + i * row, data<T>(dp) + i * row, size_.tokens,
                                   lane_count(), static_cast<T>(setting_.scale), scratch.data());
    });
  }

  // What is added to scaled scores: the bias of each pair, -infinity where there is none. [H,Nq,N]
  at::Tensor pair_bias() const {
    auto bias = at::zeros({size_.heads, size_.queries, size_.tokens}, options_);
    T* to = data<T>(bias);
    if (terms_.bias.defined()) {
      const auto table = terms_.bias.contiguous();
      for (const Run& run : runs_from_tensor(setting_.runs))
        for (int64_t t = 0; t < run.length; ++t)
          for (int64_t h = 0; h < size_.heads; ++h)
            to[h * pair_count() + (run.i + t * run.di) * size_.tokens + run.j + t * run.dj] =
                data<T>(table)[run.slot * size_.heads + h];
    }
    for (int64_t h = 0; h < size_.heads; ++h)
      for (int64_t p = 0; p < pair_count(); ++p)
        if (!open_[p]) to[h * pair_count() + p] = -std::numeric_limits<T>::infinity();
    return bias;
  }

  // Sums d_scores [B,H,Nq,N] by slot: [M,H].
  at::Tensor bias_gradient(const at::Tensor& d_scores) const {
    const auto by_pair = d_scores.sum(0);  // [H,Nq,N]
    auto grad = at::zeros(terms_.bias.sizes(), options_);
    for (const Run& run : runs_from_tensor(setting_.runs))
      for (int64_t t = 0; t < run.length; ++t)
        for (int64_t h = 0; h < size_.heads; ++h)
          data<T>(grad)[run.slot * size_.heads + h] += data<T>(
              by_pair)[h * pair_count() + (run.i + t * run.di) * size_.tokens + run.j + t * run.dj];
    return grad;
  }

  bool all_open() const { return std::find(open_.begin(), open_.end(), 0) == open_.end(); }

  void softmax_maps(at::Tensor& maps) const {
    const auto& ops = kernels::row_ops<T>();
    const auto bias = terms_.bias.defined() || !all_open() ? pair_bias() : at::Tensor();
    const int64_t rows = lane_count() * size_.queries, N = size_.tokens;
    at::parallel_for(0, rows, 64, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        ops.softmax_row(
            data<T>(maps) + row * N,
            bias.defined() ? data<T>(bias) + row % (size_.heads * size_.queries) * N : nullptr, N,
            static_cast<T>(setting_.scale));
    });
  }

  // --- content

  typename kernels::ContentPasses<T>::Shape content_shape() const {
    return {size_.heads, size_.queries, size_.tokens,
            terms_.q.defined() ? terms_.q.size(2) / size_.heads : 0, size_.out_width / size_.heads};
  }

  template <typename Pass>
  void for_items(const Pass& pass) const {
    constexpr int64_t kItems = 8;  // at a time
    parallel_each((lane_count() + kItems - 1) / kItems, [&] {
      return
          [&, passes = std::make_shared<kernels::ContentPasses<T>>(content_shape())](int64_t part) {
            pass(*passes, part * kItems, std::min(lane_count(), (part + 1) * kItems));
          };
    });
  }

  at::Tensor maps_buffer() const {
    return large_empty({size_.batch, size_.heads, size_.queries, size_.tokens}, options_);
  }

  at::Tensor content_scores() const {
    if (!terms_.q.defined()) return {};
    const auto q = readable(terms_.q), k = readable(terms_.k);
    auto maps = maps_buffer();
    for_items([&](auto& passes, int64_t begin, int64_t end) {
      passes.scores(begin, end, features<const T>(q), features<const T>(k), data<T>(maps));
    });
    return maps;
  }

  at::Tensor content_values(const at::Tensor& weights) const {
    if (!terms_.v.defined()) return at::empty({0}, options_);
    const auto v = readable(terms_.v), maps = to_maps(weights);
    auto out = at::empty({size_.batch, size_.queries, size_.out_width}, options_);
    for_items([&](auto& passes, int64_t begin, int64_t end) {
      passes.values(begin, end, data<T>(maps), features<const T>(v), features<T>(out));
    });
    return out;
  }

  at::Tensor content_values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                                     at::Tensor& dv) const {
    if (!d_out.defined()) return at::zeros_like(maps_buffer());
    const auto v = readable(terms_.v), d = readable(d_out), maps = to_maps(weights);
    auto d_maps = maps_buffer();
    if (wants(kV)) dv = at::empty(v.sizes(), options_);
    for_items([&](auto& passes, int64_t begin, int64_t end) {
      passes.values_backward(begin, end, data<T>(maps), features<const T>(v), features<const T>(d),
                             data<T>(d_maps), features<T>(dv));
    });
    return d_maps;
  }

  void softmax_maps_backward(const at::Tensor& p, at::Tensor& dp) const {
    const auto& ops = kernels::row_ops<T>();
    const int64_t N = size_.tokens;
    // With a bias the scale comes later: the bias was added to scaled scores.
    const T scale = terms_.bias.defined() ? 1 : static_cast<T>(setting_.scale);
    at::parallel_for(0, lane_count() * size_.queries, 64, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        ops.softmax_row_backward(data<T>(p) + row * N, data<T>(dp) + row * N, N, scale);
    });
  }

  void content_scores_backward(const at::Tensor& ds, at::Tensor& dq, at::Tensor& dk) const {
    const auto q = readable(terms_.q), k = readable(terms_.k);
    if (wants(kQ)) dq = at::empty(q.sizes(), options_);
    if (wants(kK)) dk = at::empty(k.sizes(), options_);
    for_items([&](auto& passes, int64_t begin, int64_t end) {
      passes.scores_backward(begin, end, features<const T>(q), features<const T>(k), data<T>(ds),
                             features<T>(dq), features<T>(dk));
    });
  }

  // lanes [Nq*N, B*H] += alpha * maps [B*H, Nq*N]^T
  void add_maps(const at::Tensor& maps, double alpha, at::Tensor& lanes) const {
    const auto& ops = kernels::row_ops<T>();
    at::parallel_for(0, pair_count(), 256, [&](int64_t begin, int64_t end) {
      ops.transpose(data<T>(maps) + begin, lane_count(), pair_count(), end - begin,
                    static_cast<T>(alpha), 1, data<T>(lanes) + begin * lane_count(), lane_count());
    });
  }

  // The map [B,H,Nq,N] as stored pair by pair, sample by sample; as it is if it already lies so.
  at::Tensor to_maps(const at::Tensor& map) const {
    if (map.is_contiguous() || !map.permute({2, 3, 0, 1}).is_contiguous()) return map.contiguous();
    const auto& ops = kernels::row_ops<T>();
    auto maps = maps_buffer();
    at::parallel_for(0, pair_count(), 256, [&](int64_t begin, int64_t end) {
      ops.transpose(data<T>(map) + begin * lane_count(), end - begin, lane_count(), lane_count(), 1,
                    0, data<T>(maps) + begin, pair_count());
    });
    return maps;
  }

  // --- relative

  at::Tensor relative_scores(at::Tensor& kept) const {
    auto lanes = lanes_buffer();
    if (!rel_q_.defined()) return lanes;
    const auto q = side(rel_q_, table_q_), k = side(rel_k_, table_k_);
    const int64_t count = kernels::kept_offsets(*plan_, size_.batch, q.width).back();
    // A number that took few products to make is made again sooner than it is read from memory.
    const bool worth_keeping = std::max(q.channels, k.channels) >= kWideChannels;
    if (worth_keeping && count * static_cast<int64_t>(sizeof(T)) <= setting_.workspace)
      kept = large_empty({count}, options_);
    for_shards([&](auto& passes, int shard) {
      passes.scores(shard, q, k, data<T>(kept), data<T>(lanes));
    });
    if (setting_.scale != 1) lanes.mul_(setting_.scale);
    return lanes;
  }

  at::Tensor relative_values(const at::Tensor& weights) const {
    if (!rel_v_.defined()) return at::empty({0}, options_);
    const auto v = side(rel_v_, table_v_);
    const auto lanes = pair_major(weights);
    auto out = large_zeros({SlotPlan::kShards, size_.queries, size_.batch, v.width}, options_);
    for_shards([&](auto& passes, int shard) {
      passes.values(shard, v, data<T>(lanes), out[shard].template data_ptr<T>());
    });
    return merge(out).transpose(0, 1);
  }

  // Room for the gradients of one side, and what becomes of it when all shards are done.
  struct Gradient {
    const Fused& fused;
    kernels::Side<T> side;
    int term;               // of the features; the table's is the next
    at::Tensor own;         // accumulator [shards, N, B, C]
    const at::Tensor& sum;  // the accumulator used: `own`, or the one joined with other sides
    at::Tensor dtable;
    std::vector<char> written;

    Gradient(const Fused& fused, const at::Tensor& x, const at::Tensor& table, int term,
             at::Tensor* joined)
        : fused(fused), side(fused.side(x, table)), term(term), sum(joined ? *joined : own) {
      const bool wanted = joined ? !joined->defined() : fused.wants(term);
      if (wanted)
        (joined ? *joined : own) =
            large_zeros({SlotPlan::kShards, x.size(0), x.size(1), x.size(2)}, x.options());
      if (fused.wants(term + 1) && table.defined()) {
        dtable = large_empty(table.sizes(), table.options());
        written.assign(table.size(0), 0);
      }
    }

    kernels::SideGradient<T> of(int shard) {
      return {sum.defined() ? sum[shard].template data_ptr<T>() : nullptr, data<T>(dtable),
              written.data()};
    }

    void finish(TermGradients& grads) {
      if (own.defined()) grads[term] = fused.merge(own).transpose(0, 1);
      for (size_t slot = 0; slot < written.size(); ++slot)
        if (!written[slot]) dtable[static_cast<int64_t>(slot)].zero_();
      grads[term + 1] = dtable;
    }
  };

  at::Tensor relative_values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                                      Gradient& dv) const {
    auto d_lanes = lanes_buffer();
    if (!d_out.defined()) return d_lanes;
    const auto d = token_major(d_out), lanes = pair_major(weights);
    for_shards([&](auto& passes, int shard) {
      passes.values_backward(shard, dv.side, data<T>(lanes), data<T>(d), data<T>(d_lanes),
                             dv.of(shard));
    });
    return d_lanes;
  }

  void relative_scores_backward(const at::Tensor& ds, const at::Tensor& kept, Gradient& dq,
                                Gradient& dk) const {
    for_shards([&](auto& passes, int shard) {
      passes.scores_backward(shard, dq.side, dk.side, data<T>(kept), data<T>(ds), dq.of(shard),
                             dk.of(shard));
    });
  }

  const AttentionTerms& terms_;
  const AttentionSetting& setting_;
  const AttentionSizes size_;
  const at::TensorOptions options_;
  const at::Tensor rel_q_, rel_k_, rel_v_;        // [N,B,C]
  const at::Tensor table_q_, table_k_, table_v_;  // [M,C,R]
  const std::vector<char> open_;
  std::shared_ptr<const SlotPlan> plan_;
  int64_t needs_ = 0;  // backward: which gradients
};

}  // namespace

bool fused_supports(const AttentionTerms& terms) {
  if (!kernels_wanted() || terms.gate.defined()) return false;
  for (const auto& table : {terms.table_q, terms.table_k, terms.table_v})
    if (table.defined() && table.dim() == 2) return false;
  const bool relative = terms.rel_q.defined() || terms.rel_v.defined();
  const auto& some = terms.k.defined() ? terms.k : terms.rel_k;
  return !(relative && terms.bias.defined()) && some.size(0) > 0 &&
         (some.scalar_type() == at::kFloat || some.scalar_type() == at::kDouble);
}

AttentionResult attention_fused(const AttentionTerms& terms, const AttentionSetting& setting) {
  const auto& some = terms.k.defined() ? terms.k : terms.rel_k;
  AttentionResult result;
  AT_DISPATCH_FLOATING_TYPES(some.scalar_type(), "attention",
                             [&] { result = Fused<scalar_t>(terms, setting).forward(); });
  return result;
}

TermGradients attention_backward_fused(const at::Tensor& d_out, const at::Tensor& d_relative_out,
                                       const at::Tensor& attention, const at::Tensor& kept,
                                       const AttentionTerms& terms, const AttentionSetting& setting,
                                       int64_t needs) {
  const auto& some = terms.k.defined() ? terms.k : terms.rel_k;
  TermGradients grads;
  AT_DISPATCH_FLOATING_TYPES(some.scalar_type(), "attention_backward", [&] {
    grads = Fused<scalar_t>(terms, setting).backward(d_out, d_relative_out, attention, kept, needs);
  });
  return grads;
}

}  // namespace translution
