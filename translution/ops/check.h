#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/precision.h"

namespace translution {

/// Checks the arguments of one call. An error message names the op, what was expected and what was
/// given. Sizes may be symbolic. With Precision::bf16, float32 and bfloat16 tensors may be mixed.
class Checker {
 public:
  explicit Checker(const char* op, Precision precision = Precision::float32)
      : op_(op), precision_(precision) {}

  /// Expects a floating-point tensor with `dims` dimensions, and the type and device of the first
  /// tensor checked.
  void tensor(const char* name, const at::Tensor& t, int64_t dims, const char* layout) {
    TORCH_CHECK(t.defined(), op_, ": ", name, " ", layout, " is missing");
    TORCH_CHECK(at::isFloatingType(t.scalar_type()), op_, ": ", name,
                " must hold floating-point numbers, got ", t.scalar_type(), "; convert it");
    TORCH_CHECK(t.dim() == dims, op_, ": ", name, " must be ", layout, ", got ", t.sym_sizes());
    const bool mixed = precision_ == Precision::bf16;
    TORCH_CHECK(!mixed || t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16, op_,
                ": precision bf16 takes float32 or bfloat16 tensors, but ", name, " is ",
                t.scalar_type(), "; convert it, or use precision float32");
    if (!first_.defined()) {
      first_ = t, first_name_ = name;
      return;
    }
    TORCH_CHECK(mixed || t.scalar_type() == first_.scalar_type(), op_, ": ", name, " is ",
                t.scalar_type(), " but ", first_name_, " is ", first_.scalar_type(),
                "; convert one of them");
    TORCH_CHECK(t.device() == first_.device(), op_, ": ", name, " is on ", t.device(), " but ",
                first_name_, " is on ", first_.device(), "; move one of them");
  }

  /// Expects size `expected` in dimension `dim`; `reason` says where that size comes from.
  void size(const char* name, const at::Tensor& t, int64_t dim, const c10::SymInt& expected,
            const char* reason) const {
    TORCH_CHECK(t.sym_size(dim) == expected, op_, ": ", name, " has size ", t.sym_size(dim),
                " in dimension ", dim < 0 ? dim + t.dim() : dim, ", expected ", expected, " (",
                reason, "); its shape is ", t.sym_sizes());
  }

  /// Expects a last dimension that is a multiple of `heads`.
  void splits(const char* name, const at::Tensor& t, int64_t heads) const {
    const auto width = t.sym_size(-1);
    TORCH_CHECK(width > 0 && width % heads == 0, op_, ": the width ", width, " of ", name,
                " does not split evenly among ", heads, " heads; expected a multiple of ", heads);
  }

  /// Expects a key padding mask for `batch` samples of `tokens` tokens.
  void padding(const at::Tensor& mask, const c10::SymInt& batch, const c10::SymInt& tokens) const {
    TORCH_CHECK(mask.scalar_type() == at::kBool, op_,
                ": the key padding mask must be bool, true for a token, got ", mask.scalar_type(),
                "; convert it, such as mask != 0");
    TORCH_CHECK(mask.dim() == 2 && mask.sym_size(0) == batch && mask.sym_size(1) == tokens, op_,
                ": the key padding mask must be [", batch, ", ", tokens,
                "], the batch and the tokens, got ", mask.sym_sizes());
    TORCH_CHECK(mask.device() == first_.device(), op_, ": the key padding mask is on ",
                mask.device(), " but ", first_name_, " is on ", first_.device(),
                "; move one of them");
  }

  const char* op() const { return op_; }

 private:
  const char* op_;
  const Precision precision_;
  at::Tensor first_;
  const char* first_name_ = "";
};

}  // namespace translution
