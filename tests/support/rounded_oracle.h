#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "tests/support/oracle.h"

/// The equations of oracle.h in plain LibTorch operations, in the type of their inputs and
/// differentiable by autograd, with the roundings of Precision::bf16 or without rounding. Tests
/// compare the error of a kernel with the error of these functions, both against double. None of
/// our ops is called.
namespace translution::rounded_oracle {

using oracle::Call;

enum class Rounding {
  none,
  /// r() rounds to bfloat16:
  /// - matrix products: y = r(a) r(b), da = r(dy) r(b)^T, db = r(a)^T r(dy);
  /// - content scores and values, which are matrix products: r(q) r(k)^T, r(w) r(v);
  /// - encodings of a relative side: r(r(x) r(W[s])), or r(x) without a table. The gradient of an
  ///   encoding is summed over the pairs that read it, and rounded before it is multiplied.
  /// Dot products and sums of encodings, vectors per slot, bias, gate and softmax are not rounded.
  bf16,
};

/// x [...,in] times weight [in,out], plus a bias [out] if it is defined.
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, Rounding rounding,
                   const at::Tensor& bias = {});

/// The methods, as in ops/methods.h: {out, map}. `call.keep` has the type of x.
MethodResult translution(const at::Tensor& x, const RoleWeights& weights, const Call& call,
                         Rounding rounding);
MethodResult alpha_translution(const at::Tensor& x, const AlphaWeights& weights, const Call& call,
                               Mixing mixing, Rounding rounding);
MethodResult self_attention(const at::Tensor& x, const RoleWeights& weights,
                            const PositionTerms& terms, const Call& call, Rounding rounding);
MethodResult convolution(const at::Tensor& x, const at::Tensor& weight, const Call& call,
                         Rounding rounding);

/// The results of an attention. Absent outputs are undefined.
struct Attended {
  at::Tensor out, relative_out;
  at::Tensor map;  ///< after the gate, before dropout
};
Attended attention(const AttentionTerms& terms, double scale, const Call& call, Rounding rounding);

}  // namespace translution::rounded_oracle
