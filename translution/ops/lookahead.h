#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/offsets.h"
#include "translution/ops/methods.h"

namespace translution {

/// Translution of a causal text that grows token by token, with q, k and v all relative. Runs on
/// the CPU, without gradients.
///
/// Keys and values depend on the distance to the query, so they cannot be cached for the next
/// query. But the contribution of token j to query i depends only on x_j and the slots of the pair:
///   u_ijh = (x_j Wk[s'])_h Wq[s]_h^T   [C], so that score_ijh = x_i . u_ijh / sqrt(D)
///   v_ij  = x_j Wv[s]
/// Contributions are computed before x_i is known, for many queries at once, so that a matrix read
/// from memory multiplies many rows instead of one. Queries are prepared in blocks of 32 and
/// groups of 4. When a block begins, all earlier tokens contribute to its 32 queries. A new token
/// contributes to the remaining queries of its group. When a group is complete, its 4 tokens
/// contribute to the remaining queries of the block. The number of products is the same as for one
/// query after the other.
///
/// With Precision::bf16, or weights in bfloat16, operands of products are rounded, and
/// contributions are stored in bfloat16, which halves the memory traffic. The query is never
/// computed, so u is rounded in its place; all other roundings are those of `attention`.
class TRANSLUTION_API Lookahead {
 public:
  /// `weights` are [M,C,heads*D] each, or [M,C+1,heads*D] with bias rows; `offsets` must be causal.
  /// With Precision::bf16, weights of another type are copied.
  Lookahead(const RoleWeights& weights, std::shared_ptr<const OffsetTable> offsets, int64_t heads,
            Precision precision = Precision::float32);

  /// Takes the features x [n,C] of all tokens so far and returns the output of the last token,
  /// [heads*D]. Call restart() before another text, or before other features of the same tokens.
  at::Tensor gather(const at::Tensor& x);
  /// Discards the text.
  void restart() { first_ = known_ = ahead_ = 0; }

 private:
  struct Range {
    int64_t begin, end;
  };
  void begin_block(const at::Tensor& x, int64_t known);
  void contribute(const at::Tensor& x, Range tokens, Range queries);
  template <typename T>
  void contribute_spans(const at::Tensor& x, const std::vector<PairSpan>& spans);
  void contribute_spans_bf16(const at::Tensor& x, const std::vector<PairSpan>& spans);
  at::Tensor gather_prepared(const at::Tensor& x) const;
  at::Tensor gather_prepared_bf16(const at::Tensor& x) const;
  std::vector<PairSpan> spans(Range tokens, Range queries) const;

  RoleWeights weights_;
  std::shared_ptr<const OffsetTable> offsets_;
  int64_t heads_;
  bool bf16_;
  int64_t first_ = 0, ahead_ = 0;  // the block of prepared queries: its first one and its size
  int64_t known_ = 0;              // number of tokens seen so far
  at::Tensor scorers_;             // u, [ahead, heads, first + ahead, C]
  at::Tensor values_;              // v, [ahead, first + ahead, heads * D]
};

}  // namespace translution
