#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/offsets.h"
#include "translution/ops/methods.h"

namespace translution {

/// Translution of a causal text that grows token by token, with q, k and v all relative; on the
/// CPU, without gradients.
///
/// Keys and values depend on the distance to the query, so they cannot be kept for the next one.
/// But what token j offers to query i is a function of x_j and the pair's slots alone:
///   u_ijh = (x_j Wk[s'])_h Wq[s]_h^T   [C], so that score_ijh = x_i . u_ijh / sqrt(D)
///   v_ij  = x_j Wv[s]
/// It is computed before query i is known, for many queries in one go: a matrix that comes from
/// memory then multiplies many rows instead of one. When the queries prepared are used up, all
/// tokens make their offers to the next 32; on the way there, every 4 tokens to those of the 32
/// that are left, and each token to those of its 4. The number of products is that of one query
/// after the other.
///
/// With Precision::bf16, or weights in bfloat16, operands of products are rounded, and what tokens
/// offer is kept in bfloat16: memory is read and written half as much. Instead of the query, which
/// is never formed, u is rounded; the rest is rounded as `attention` does it.
class TRANSLUTION_API Lookahead {
 public:
  /// `weights` [M,C,heads*D]; `offsets` is causal. With Precision::bf16, weights of another type
  /// are copied.
  Lookahead(const RoleWeights& weights, std::shared_ptr<const OffsetTable> offsets, int64_t heads,
            Precision precision = Precision::float32);

  /// x [n,C] of all tokens of the text -> what the last of them gathers, [heads*D]. Another text,
  /// or other features of the same tokens, need a restart first.
  at::Tensor gather(const at::Tensor& x);
  /// Forgets the text.
  void restart() { first_ = known_ = ahead_ = 0; }

 private:
  struct Range {
    int64_t begin, end;
  };
  void look_ahead(const at::Tensor& x, int64_t known);
  void offer(const at::Tensor& x, Range tokens, Range queries);
  template <typename T>
  void offer_spans(const at::Tensor& x, const std::vector<PairSpan>& spans);
  void offer_spans_bf16(const at::Tensor& x, const std::vector<PairSpan>& spans);
  at::Tensor gather_prepared(const at::Tensor& x) const;
  at::Tensor gather_prepared_bf16(const at::Tensor& x) const;
  std::vector<PairSpan> spans(Range tokens, Range queries) const;

  RoleWeights weights_;
  std::shared_ptr<const OffsetTable> offsets_;
  int64_t heads_;
  bool bf16_;
  int64_t first_ = 0, ahead_ = 0;  // the queries that are prepared: so many from the first on
  int64_t known_ = 0;              // tokens that have made their offers to them
  at::Tensor scorers_;             // u, [ahead, heads, first + ahead, C]
  at::Tensor values_;              // v, [ahead, first + ahead, heads * D]
};

}  // namespace translution
