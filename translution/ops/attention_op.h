#pragma once

#include <ATen/ATen.h>

#include <string>
#include <tuple>
#include <vector>

#include "translution/ops/attention_impl.h"
#include "translution/ops/compat.h"

namespace translution {

// The op's schema in C++, and adapters from its signature to implementations that take structs.
// docs/schema.md gives the reason for each argument.

using AttentionOutputs = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using AttentionForward = AttentionOutputs(const OptionalTensorList& terms, const std::string& pairs,
                                          at::IntArrayRef grid, at::IntArrayRef rows, int64_t heads,
                                          double scale, const OptionalTensor& keep,
                                          const OptionalTensor& mask, const std::string& precision,
                                          const std::string& group, bool batch_last,
                                          int64_t workspace);
constexpr const char* kAttentionForward =
    "attention(Tensor?[] terms, str pairs, int[] grid, int[] rows, int heads, float scale, "
    "Tensor? keep=None, Tensor? mask=None, str precision='float32', str group='', "
    "bool batch_last=False, int workspace=0) -> (Tensor, Tensor, Tensor, Tensor)";

using AttentionBackward = std::vector<at::Tensor>(
    const OptionalTensor& d_out, const OptionalTensor& d_relative_out, const at::Tensor& attention,
    const at::Tensor& kept, int64_t needs, const OptionalTensorList& terms,
    const std::string& pairs, at::IntArrayRef grid, at::IntArrayRef rows, int64_t heads,
    double scale, const OptionalTensor& keep, const OptionalTensor& mask,
    const std::string& precision, const std::string& group, bool batch_last);
constexpr const char* kAttentionBackward =
    "attention_backward(Tensor? d_out, Tensor? d_relative_out, Tensor attention, Tensor kept, "
    "int needs, Tensor?[] terms, str pairs, int[] grid, int[] rows, int heads, float scale, "
    "Tensor? keep, Tensor? mask, str precision, str group, bool batch_last=False) -> Tensor[]";

inline AttentionTerms to_terms(const OptionalTensorList& list) {
  TORCH_CHECK(list.size() == kTermCount, "attention: expected a list of ", kTermCount,
              " terms, got ", list.size());
  AttentionTerms terms;
  for (int t = 0; t < kTermCount; ++t) terms.*kTermFields[t] = value_or_undefined(list.get(t));
  return terms;
}

inline AttentionCall to_call(const std::string& pairs, at::IntArrayRef grid, at::IntArrayRef rows,
                             int64_t heads, double scale, const OptionalTensor& keep,
                             const OptionalTensor& mask, const std::string& precision,
                             const std::string& group, bool batch_last, int64_t workspace = 0) {
  AttentionCall call;
  call.pairs = {pairs, grid.vec(), rows.vec()};
  call.heads = heads;
  call.scale = scale;
  call.keep = value_or_undefined(keep);
  call.mask = value_or_undefined(mask);
  call.batch_last = batch_last;
  call.workspace = workspace;
  call.precision = parse_name("precision", kPrecisions, precision);
  call.group = group;
  return call;
}

/// Adapts `forward` to AttentionForward. The arguments after the terms go to `to_call`.
template <AttentionResult (*forward)(const AttentionTerms&, const AttentionCall&), typename... Rest>
AttentionOutputs forward_op(const OptionalTensorList& terms, Rest... rest) {
  auto [out, relative_out, map, kept] = forward(to_terms(terms), to_call(rest...));
  return {std::move(out), std::move(relative_out), std::move(map), std::move(kept)};
}

/// Adapts `backward` to AttentionBackward in the same way.
template <TermGradients (*backward)(const OutputGradients&, const AttentionTerms&,
                                    const AttentionCall&, int64_t needs),
          typename... Rest>
std::vector<at::Tensor> backward_op(const OptionalTensor& d_out,
                                    const OptionalTensor& d_relative_out,
                                    const at::Tensor& attention, const at::Tensor& kept,
                                    int64_t needs, const OptionalTensorList& terms, Rest... rest) {
  auto grads =
      backward({value_or_undefined(d_out), value_or_undefined(d_relative_out), attention, kept},
               to_terms(terms), to_call(rest...), needs);
  for (auto& grad : grads)  // a Tensor[] cannot hold undefined tensors
    grad = grad.defined() ? grad.contiguous() : at::empty({0}, attention.options());
  return {grads.begin(), grads.end()};
}

}  // namespace translution
