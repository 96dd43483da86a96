#pragma once

#include <type_traits>
#include <vector>

#include "translution/kernels/content.h"
#include "translution/ops/attention_impl.h"

namespace translution {

// What the parts of the CPU implementation share: softmax, content, vectors and
// slots each have a file.

/// Is a table one of vectors per slot, not of matrices?
inline bool is_vectors(const at::Tensor& table) { return table.defined() && table.dim() == 2; }

/// One call: its terms and sizes, and which of its pairs are attended to.
struct FusedCall {
  FusedCall(const AttentionTerms& terms, const AttentionSetting& setting);

  const AttentionTerms& terms;
  const AttentionSetting& setting;
  const AttentionSizes size;
  const at::TensorOptions options;
  std::vector<int64_t>
      slots;               ///< [Nq*N]: the slot of a pair, -1 if no run has it; empty without runs
  std::vector<char> open;  ///< [Nq*N]: 1 where row i may see token j
  int64_t needs = 0;       ///< backward: which gradients

  bool key_vectors() const { return is_vectors(terms.table_k); }
  bool value_vectors() const { return is_vectors(terms.table_v); }
  /// Are there relative sides with features, so that scores are kept pair by pair?
  bool pairwise() const {
    return (terms.rel_q.defined() && !key_vectors()) || terms.rel_v.defined();
  }

  bool wants(int term) const { return ((needs >> term) & 1) != 0; }
  /// A lane of a pair, or the item whose map it lies in: one sample and head.
  int64_t lane_count() const { return size.batch * size.heads; }
  int64_t pair_count() const { return size.queries * size.tokens; }

  /// Lanes are [Nq,N,B,H], or [Nq,N,H,B] where relative rows are too narrow to fill vectors with
  /// their channels and there are samples to fill them with.
  bool batch_last() const { return batch_last_; }
  int64_t relative_width() const;  ///< channels of the widest relative row

  at::Tensor new_maps() const;   ///< [B,H,Nq,N], not filled
  at::Tensor new_lanes() const;  ///< zeros where a pair has no slot, else not filled
  at::Tensor as_lanes(const at::Tensor& map) const;  ///< [B,H,Nq,N] as lanes
  at::Tensor as_map(const at::Tensor& lanes) const;  ///< the same numbers as [B,H,Nq,N]

 private:
  const bool batch_last_;
};

template <typename T>
T* data(const at::Tensor& x) {
  return x.defined() && x.numel() > 0 ? x.data_ptr<T>() : nullptr;
}

inline at::Tensor contiguous(const at::Tensor& x) { return x.defined() ? x.contiguous() : x; }

/// Features whose rows the kernels can read: as they are, or else a copy.
at::Tensor readable(const at::Tensor& x);

template <typename T>
kernels::Features<T> features(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {data<std::remove_const_t<T>>(x), x.stride(0), x.stride(1)};
}

}  // namespace translution
