#include "translution/ops/fused_relative.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "translution/ops/large.h"
#include "translution/ops/packed_weights.h"
#include "translution/ops/parallel.h"
#include "translution/ops/rounding.h"

namespace translution {
namespace {

// x [parts,rows,cols] -> a contiguous copy [parts,cols,rows].
template <typename T>
at::Tensor transposed(const at::Tensor& x, int64_t parts, int64_t rows, int64_t cols) {
  const auto& ops = kernels::row_ops<T>();
  auto out = large_empty({parts, cols, rows}, x.options());
  for (int64_t part = 0; part < parts; ++part) {
    const T* from = data<T>(x) + part * rows * cols;
    T* to = data<T>(out) + part * rows * cols;
    parallel_ranges(cols, 256, [&](int64_t begin, int64_t end) {
      ops.transpose(from + begin, rows, cols, end - begin, 1, 0, to + begin * rows, rows);
    });
  }
  return out;
}

// x [B,N,C] -> [parts,N,b,C], rounded to bfloat16.
at::Tensor rounded_tokens_first(const at::Tensor& x, int64_t parts) {
  const auto given = readable(x);
  const int64_t b = x.size(0) / parts, N = x.size(1), C = x.size(2);
  auto out = large_empty({parts, N, b, C}, x.options().dtype(at::kBFloat16));
  const auto* const from = data<float>(given);
  auto* const to = data<kernels::Bf16>(out);
  parallel_ranges(parts * N, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t sample = 0; sample < b; ++sample)
        kernels::bf16_row_ops().round(
            from + (row / N * b + sample) * given.stride(0) + row % N * given.stride(1), C,
            to + (row * b + sample) * C);
  });
  return out;
}

// Packs each token of each part of x [B,N,C]: as [C,b] with the batch last, otherwise as [b,C].
at::Tensor packed_tokens(const at::Tensor& x, int64_t parts, bool batch_last) {
  const auto given = readable(x);
  const int64_t b = x.size(0) / parts, N = x.size(1), C = x.size(2);
  const int64_t size = batch_last ? kernels::packed_size(C, b) : kernels::packed_size(b, C);
  auto out = large_empty({parts, N, size}, x.options().dtype(at::kBFloat16));
  const auto& ops = kernels::bf16_row_ops();
  parallel_ranges(parts * N, 1, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const float* const rows =
          data<float>(given) + token / N * b * given.stride(0) + token % N * given.stride(1);
      auto* const to = data<kernels::Bf16>(out) + token * size;
      if (batch_last)
        ops.pack_transposed(rows, given.stride(0), C, b, to);
      else
        ops.pack(rows, given.stride(0), b, C, to);
    }
  });
  return out;
}

// Matrices [M,rows,columns] as bfloat16, with rows zero-padded to complete tiles.
at::Tensor padded_rows(const at::Tensor& matrices) {
  const int64_t columns = matrices.size(2);
  const int64_t padding =
      (kernels::kTileDepth - columns % kernels::kTileDepth) % kernels::kTileDepth;
  return at::constant_pad_nd(to_bf16(matrices), {0, padding}).contiguous();
}

bool is_same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

}  // namespace

template <typename Passes>
FusedRelative<Passes>::FusedRelative(const FusedCall& call)
    : call_(call),
      plan_(call.pairwise ? kernels::slot_plan(*call.pairs, call.batch, relative_width(call.terms))
                          : nullptr),
      rel_q_(call.pairwise ? arrange(call.terms.rel_q) : Features()),
      rel_k_(is_same_view(call.terms.rel_q, call.terms.rel_k) ? rel_q_ : arrange(call.terms.rel_k)),
      rel_v_(is_same_view(call.terms.rel_k, call.terms.rel_v) ? rel_k_ : arrange(call.terms.rel_v)),
      table_q_(prepare(call.terms.table_q)),
      table_k_(prepare(call.terms.table_k)),
      table_v_(prepare(call.terms.table_v)) {}

template <typename Passes>
typename FusedRelative<Passes>::Features FusedRelative<Passes>::arrange(const at::Tensor& x) const {
  if (!x.defined()) return {};
  Features features{tokens_first(x, call_.batch_last), {}, x.size(1), x.size(2)};
  if (call_.batch_last && call_.needs != 0) features.rows = tokens_first(x, false);
  return features;
}

// [B,N,C] -> [parts,N,b,C], or [parts,N,C,b] with the batch last.
template <typename Passes>
at::Tensor FusedRelative<Passes>::tokens_first(const at::Tensor& x, bool batch_last) const {
  const int64_t parts = plan_->counts.parts, b = x.size(0) / parts, N = x.size(1), C = x.size(2);
  if constexpr (kLastBf16)
    return packed_tokens(x, parts, batch_last);
  else if constexpr (kBf16)
    return rounded_tokens_first(x, parts);
  else if (batch_last)
    return transposed<T>(x.contiguous(), parts, b, N * C).view({parts, N, C, b});
  else
    return x.reshape({parts, b, N, C}).transpose(1, 2).contiguous();
}

template <typename Passes>
typename FusedRelative<Passes>::Table FusedRelative<Passes>::prepare(
    const at::Tensor& matrices) const {
  if (!matrices.defined()) return {};
  if constexpr (kLastBf16)
    return {matrices, call_.needs ? padded_rows(matrices) : at::Tensor(),
            padded_rows(matrices.transpose(1, 2))};
  else if constexpr (kBf16)
    return {contiguous(matrices), packed_weight(matrices, false, call_.needs == 0),
            call_.needs ? packed_weight(matrices, true, false) : at::Tensor()};
  else
    return {contiguous(matrices), {}, {}};
}

template <typename Passes>
typename FusedRelative<Passes>::Side FusedRelative<Passes>::side(const Features& features,
                                                                 const Table& table,
                                                                 int64_t part) const {
  const auto& matrices = table.matrices;
  const int64_t first = part * features.x.stride(0), channels = features.channels;
  const int64_t width = matrices.defined() ? matrices.size(2) : channels;
  const Row* const x = data<Row>(features.x) + first;
  const Row* const rows =
      features.rows.defined() ? data<Row>(features.rows) + part * features.rows.stride(0) : nullptr;
  if constexpr (kLastBf16) {
    return {x, rows, data<Row>(table.straight), data<Row>(table.transposed), channels, width};
  } else if constexpr (kBf16) {
    const bool floats = matrices.defined() && matrices.scalar_type() == at::kFloat;
    return {x,
            {data<Row>(table.straight), data<Row>(table.transposed),
             floats ? data<float>(matrices) : nullptr, floats ? nullptr : data<Row>(matrices)},
            channels,
            width};
  } else {
    return {x, data<T>(matrices), channels, width, rows};
  }
}

// Pointer to the first sample of a part in lanes [Nq,N,B,H] or [Nq,N,H,B].
template <typename Passes>
typename FusedRelative<Passes>::T* FusedRelative<Passes>::lanes_of(const at::Tensor& lanes,
                                                                   int64_t part) const {
  const int64_t sample = part * (call_.batch / plan_->counts.parts);
  return data<T>(lanes) + sample * (call_.batch_last ? 1 : call_.heads);
}

template <typename Passes>
typename FusedRelative<Passes>::Row* FusedRelative<Passes>::kept_of(const at::Tensor& kept,
                                                                    int64_t part) const {
  Row* const first = data<Row>(kept);
  return first ? first + part * (kept.numel() / plan_->counts.parts) : nullptr;
}

// Uninitialised accumulators [sums,parts,N,b,C] or [sums,parts,N,C,b]. The first piece that adds to
// one clears it.
template <typename Passes>
at::Tensor FusedRelative<Passes>::new_sums(int64_t tokens, int64_t channels) const {
  const auto [sums, parts] = plan_->counts;
  const int64_t b = call_.batch / parts;
  return call_.batch_last ? large_empty({sums, parts, tokens, channels, b}, call_.options)
                          : large_empty({sums, parts, tokens, b, channels}, call_.options);
}

template <typename Passes>
typename FusedRelative<Passes>::T* FusedRelative<Passes>::sum_of(const at::Tensor& sums,
                                                                 const Piece& piece,
                                                                 bool clear) const {
  T* const sum = data<T>(sums) + piece.sum * sums.stride(1);
  if (clear) std::fill_n(sum, sums.stride(1), T(0));
  return sum;
}

// Adds up the accumulators in a fixed order and returns the sum as [B,N,C].
template <typename Passes>
at::Tensor FusedRelative<Passes>::merge(const at::Tensor& sums) const {
  const int64_t count = sums.stride(0);
  const auto& ops = kernels::row_ops<T>();
  parallel_ranges(count, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t sum = 1; sum < sums.size(0); ++sum)
      ops.add(data<T>(sums) + sum * count + begin, end - begin, data<T>(sums) + begin);
  });
  const auto total = sums[0];
  const int64_t parts = total.size(0), N = total.size(1), B = call_.batch;
  if (call_.batch_last)
    return transposed<T>(total, parts, N * total.size(2), B / parts).view({B, N, total.size(2)});
  auto out = large_empty({B, N, total.size(3)}, call_.options);
  out.view({parts, B / parts, N, total.size(3)}).copy_(total.transpose(1, 2));
  return out;
}

// Calls pass for every shard and every part of the batch. Pieces that run at the same time add to
// different accumulators. A pass that also writes table rows, which belong to shards, runs in as
// many rounds as there are parts. In each round, the parts work on different shards.
template <typename Passes>
template <typename Pass>
inline void FusedRelative<Passes>::for_pieces(bool writes_tables, const Pass& pass) const {
  const auto [sums, parts] = plan_->counts;
  const kernels::Sizes sizes{call_.batch / parts, call_.batch, call_.tokens, call_.heads,
                             call_.batch_last};
  const int64_t together = writes_tables ? 1 : parts;
  for (int64_t first = 0; first < parts; first += together)
    parallel_each(sums * parts, [&, parts = parts] {
      return [&, parts, passes = std::make_shared<Passes>(*plan_, sizes)](int64_t sum) {
        const int64_t part = sum % parts;
        for (int64_t round = first; round < first + together; ++round)
          pass(*passes,
               Piece{static_cast<int>(sum - part + (part + round) % parts), part, sum, round == 0});
      };
    });
}

template <typename Passes>
at::Tensor FusedRelative<Passes>::scores(const at::Tensor& kept) const {
  auto lanes = call_.new_lanes();
  if (!rel_q_.x.defined()) return lanes.zero_();
  for_pieces(/*writes_tables=*/false, [&](auto& passes, const Piece& piece) {
    passes.scores(piece.shard, side(rel_q_, table_q_, piece.part),
                  side(rel_k_, table_k_, piece.part), kept_of(kept, piece.part),
                  lanes_of(lanes, piece.part));
  });
  call_.sums.add_pairs(lanes);
  return lanes;
}

template <typename Passes>
at::Tensor FusedRelative<Passes>::values(const at::Tensor& weights) const {
  if (!rel_v_.x.defined()) return at::empty({0}, call_.options);
  const auto lanes = call_.as_lanes(weights).contiguous();
  auto out = new_sums(call_.queries, side(rel_v_, table_v_, 0).width);
  for_pieces(/*writes_tables=*/false, [&](auto& passes, const Piece& piece) {
    passes.values(piece.shard, side(rel_v_, table_v_, piece.part), lanes_of(lanes, piece.part),
                  sum_of(out, piece, piece.first));
  });
  const auto sum = merge(out);
  call_.sums.add({sum});
  return sum;
}

// The gradients of one side while the shards run. finish() moves them to the result.
template <typename Passes>
struct FusedRelative<Passes>::Gradient {
  const FusedRelative& relative;
  int term;               // term of the features; the table is the next term
  at::Tensor own;         // accumulators of this side alone
  const at::Tensor& sum;  // the accumulators used: `own`, or those shared with other sides
  bool first;             // this side is the first to add to them
  at::Tensor dtable;
  std::vector<char> written;

  Gradient(const FusedRelative& relative, const Features& features, const Table& table, int term,
           at::Tensor* joined)
      : relative(relative),
        term(term),
        sum(joined ? *joined : own),
        first(joined ? !joined->defined() : relative.call_.needs_grad(term)) {
    if (first) (joined ? *joined : own) = relative.new_sums(features.tokens, features.channels);
    const auto& matrices = table.matrices;
    if (relative.call_.needs_grad(term + 1) && matrices.defined()) {
      dtable = large_empty(matrices.sizes(), relative.call_.options);
      written.assign(matrices.size(0), 0);
    }
  }

  kernels::SideGradient<T> of(const Piece& piece) {
    T* const dx = sum.defined() ? relative.sum_of(sum, piece, first && piece.first) : nullptr;
    return {dx, data<T>(dtable), written.data()};
  }

  void finish(TermGradients& grads) {
    if (own.defined()) grads[term] = relative.merge(own);
    for (size_t slot = 0; slot < written.size(); ++slot)
      if (!written[slot]) dtable[static_cast<int64_t>(slot)].zero_();
    grads[term + 1] = dtable;
  }
};

template <typename Passes>
at::Tensor FusedRelative<Passes>::values_backward(const at::Tensor& weights,
                                                  const at::Tensor& d_out, TermGradients& grads) {
  auto d_lanes = call_.new_lanes();
  if (!rel_v_.x.defined()) return d_lanes.zero_();
  Gradient dv(*this, rel_v_, table_v_, kRelV, call_.needs & kJoinV ? &joined_ : nullptr);
  const int64_t width = side(rel_v_, table_v_, 0).width;
  const auto lanes = call_.as_lanes(weights).contiguous();
  const auto d = tokens_first(
      d_out.defined() ? d_out : at::zeros({call_.batch, call_.queries, width}, call_.options),
      call_.batch_last);
  for_pieces(/*writes_tables=*/true, [&](auto& passes, const Piece& piece) {
    passes.values_backward(piece.shard, side(rel_v_, table_v_, piece.part),
                           lanes_of(lanes, piece.part), data<Row>(d) + piece.part * d.stride(0),
                           lanes_of(d_lanes, piece.part), dv.of(piece));
  });
  dv.finish(grads);
  return d_lanes;
}

template <typename Passes>
void FusedRelative<Passes>::scores_backward(const at::Tensor& d_scores, const at::Tensor& kept,
                                            TermGradients& grads) {
  if (rel_q_.x.defined()) {
    const bool joins = (call_.needs & (kJoinK | kJoinV)) != 0;
    Gradient dq(*this, rel_q_, table_q_, kRelQ, joins ? &joined_ : nullptr);
    Gradient dk(*this, rel_k_, table_k_, kRelK, call_.needs & kJoinK ? &joined_ : nullptr);
    for_pieces(/*writes_tables=*/true, [&](auto& passes, const Piece& piece) {
      passes.scores_backward(piece.shard, side(rel_q_, table_q_, piece.part),
                             side(rel_k_, table_k_, piece.part), kept_of(kept, piece.part),
                             lanes_of(d_scores, piece.part), dq.of(piece), dk.of(piece));
    });
    dq.finish(grads);
    dk.finish(grads);
  }
  if (joined_.defined()) grads[kRelQ] = merge(joined_);
  call_.sums.add_defined({&grads[kRelQ], &grads[kRelK], &grads[kRelV]});
}

template class FusedRelative<kernels::RelativePasses<float>>;
template class FusedRelative<kernels::RelativePasses<double>>;
template class FusedRelative<kernels::Bf16RelativePasses>;
template class FusedRelative<kernels::Bf16LastPasses>;

}  // namespace translution
