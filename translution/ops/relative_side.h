#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/precision.h"

namespace translution {

/// One relative side (query, key or value) of a slot-wise op. It has token-major features x [N,B,C]
/// and a table of matrices [M,C,R], or x alone, or a table of vectors [M,R] alone.
class RelativeSide {
 public:
  /// `x` is batch-major [B,N,C] or undefined, `table` is as above or undefined. With bf16,
  /// encodings are rounded, except vectors.
  RelativeSide(const at::Tensor& x, const at::Tensor& table, int64_t batch,
               Precision precision = Precision::float32);

  bool present() const { return x_.defined() || table_.defined(); }
  int64_t width() const;

  /// The encodings [U,B,R] of the given tokens with the matrix (or vector) of `slot`.
  at::Tensor encode(int64_t slot, const at::Tensor& tokens) const;

  /// Allocates and clears the gradients that are needed.
  void begin_backward(bool needs_x, bool needs_table);
  /// Adds the gradient d [U,B,R] of encode(slot, tokens). With bf16, d is rounded, except for
  /// vectors.
  void add_gradient(int64_t slot, const at::Tensor& tokens, const at::Tensor& d);
  /// [B,N,C]; undefined if not needed.
  at::Tensor dx() const;
  at::Tensor dtable() const { return dtable_; }

 private:
  at::Tensor x_, table_, dx_, dtable_;
  int64_t batch_;
  Precision precision_;
};

}  // namespace translution
