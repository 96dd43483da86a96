#include "translution/ops/attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "translution/ops/attention_fused.h"
#include "translution/ops/attention_op.h"
#include "translution/ops/attention_portable.h"
#include "translution/ops/compat.h"
#include "translution/ops/register.h"

namespace translution {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

OptionalTensorList to_list(const AttentionTerms& terms) {
  OptionalTensorList list;
  for (const auto field : kTermFields) list.push_back(optional(terms.*field));
  return list;
}

[[gnu::always_inline]] inline AttentionResult call_forward(const AttentionTerms& terms,
                                                           const AttentionCall& call) {
  static const Op<AttentionForward> op("translution::attention");
  auto [out, relative_out, map, kept] =
      op(to_list(terms), call.pairs.text, call.pairs.grid, call.pairs.rows, call.heads, call.scale,
         optional(call.keep), optional(call.mask), name_of(kPrecisions, call.precision), "",
         call.workspace);
  return {std::move(out), std::move(relative_out), std::move(map), std::move(kept)};
}

std::vector<at::Tensor> call_backward(const OutputGradients& d, const AttentionTerms& terms,
                                      const AttentionCall& call, int64_t needs) {
  static const Op<AttentionBackward> op("translution::attention_backward");
  return op(optional(d.out), optional(d.relative_out), d.attention, d.kept, needs, to_list(terms),
            call.pairs.text, call.pairs.grid, call.pairs.rows, call.heads, call.scale,
            optional(call.keep), optional(call.mask), name_of(kPrecisions, call.precision), "");
}

// --- implementations

AttentionResult forward_portable(const AttentionTerms& terms, const AttentionCall& call) {
  return attention_portable(terms, call, check_attention(terms, call));
}

AttentionResult forward_meta(const AttentionTerms& terms, const AttentionCall& call) {
  const auto size = check_attention(terms, call);
  const auto options = output_options(terms);
  const auto output = [&](const c10::SymInt& width) {
    return width > 0 ? at::empty_symint({size.batch, size.queries, width}, options)
                     : at::empty({0}, options);
  };
  const bool bf16 = multiplies_bf16(terms, call);
  return {output(size.out_width), output(size.relative_width),
          empty_map(terms, size, bf16 ? options.dtype(at::kFloat) : options),
          at::empty_symint({kept_numbers(terms, call, size)},
                           bf16 ? options.dtype(at::kBFloat16) : options)};
}

TermGradients backward_meta(const OutputGradients&, const AttentionTerms& terms,
                            const AttentionCall&, int64_t needs) {
  TermGradients grads;
  for (int t = 0; t < kTermCount; ++t)
    if ((needs >> t) & 1) grads[t] = empty_of(terms.*kTermFields[t]);
  return grads;
}

// --- autograd

// Autograd needs defined tensors, so absent terms are dropped. Bit t of `present` is set if term t
// is present.
struct PresentTerms {
  std::vector<at::Tensor> tensors;
  int64_t present = 0;
};

PresentTerms drop_absent(const AttentionTerms& terms) {
  PresentTerms result;
  for (int t = 0; t < kTermCount; ++t) {
    const auto& tensor = terms.*kTermFields[t];
    if (tensor.defined()) result.tensors.push_back(tensor), result.present |= int64_t{1} << t;
  }
  return result;
}

AttentionTerms restore_absent(at::ArrayRef<at::Tensor> tensors, int64_t present) {
  AttentionTerms terms;
  size_t next = 0;
  for (int t = 0; t < kTermCount; ++t)
    if ((present >> t) & 1) terms.*kTermFields[t] = tensors[next++];
  return terms;
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static constexpr bool is_traceable = true;

  [[gnu::always_inline]] static variable_list forward(AutogradContext* ctx, at::TensorList tensors,
                                                      int64_t present, const AttentionCall& call) {
    at::AutoDispatchBelowADInplaceOrView below;
    const auto terms = restore_absent(tensors, present);
    const auto result = call_forward(terms, call);
    auto saved = tensors.vec();
    saved.insert(saved.end(), {call.keep, call.mask, result.attention, result.kept});
    ctx->save_for_backward(saved);
    auto& data = ctx->saved_data;
    data["present"] = present;
    data["joins"] = find_joins(terms);
    data["pairs"] = call.pairs.text;
    data["grid"] = call.pairs.grid;
    data["rows"] = call.pairs.rows;
    data["heads"] = call.heads;
    data["scale"] = call.scale;
    data["precision"] = static_cast<int64_t>(call.precision);
    ctx->mark_non_differentiable({result.attention, result.kept});
    ctx->set_materialize_grads(false);  // otherwise autograd allocates zeros of the size of `kept`
    return {result.out, result.relative_out, result.attention, result.kept};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outputs) {
    const auto saved = ctx->get_saved_variables();
    auto& data = ctx->saved_data;
    const size_t count = saved.size() - 4;  // keep, mask, attention and kept follow
    const int64_t present = data["present"].toInt();
    const auto terms = restore_absent(at::ArrayRef<at::Tensor>(saved).slice(0, count), present);
    AttentionCall call;
    call.pairs = {data["pairs"].toStringRef(), data["grid"].toIntVector(),
                  data["rows"].toIntVector()};
    call.heads = data["heads"].toInt();
    call.scale = data["scale"].toDouble();
    call.keep = saved[count];
    call.mask = saved[count + 1];
    call.precision = static_cast<Precision>(data["precision"].toInt());
    const bool relative = terms.rel_v.defined() || terms.table_v.defined();
    int64_t needs = joined(needed_terms(ctx, present), data["joins"].toInt());
    if (!d_outputs[0].defined()) needs &= ~(int64_t{1} << kV);  // v affects `out` only
    const auto grads =
        call_backward({terms.v.defined() ? d_outputs[0] : at::Tensor(),
                       relative ? d_outputs[1] : at::Tensor(), saved[count + 2], saved[count + 3]},
                      terms, call, needs);
    variable_list result;
    for (int t = 0; t < kTermCount; ++t)
      if ((present >> t) & 1) result.push_back((needs >> t) & 1 ? grads[t] : at::Tensor());
    result.resize(count + 2);  // no gradients of `present` and the call
    return result;
  }

 private:
  static int64_t find_joins(const AttentionTerms& t) {
    if (!t.rel_q.defined()) return 0;
    return (t.rel_k.is_same(t.rel_q) ? kJoinK : 0) | (t.rel_v.is_same(t.rel_q) ? kJoinV : 0);
  }

  // Terms that share a tensor: requests one gradient for all of them.
  static int64_t joined(int64_t needs, int64_t joins) {
    if (!((needs >> kRelQ) & 1)) return needs;
    if (joins & kJoinK) needs &= ~(int64_t{1} << kRelK);
    if (joins & kJoinV) needs &= ~(int64_t{1} << kRelV);
    return needs | joins;
  }

  static int64_t needed_terms(AutogradContext* ctx, int64_t present) {
    int64_t needs = 0;
    size_t edge = 0;
    for (int t = 0; t < kTermCount; ++t)
      if (((present >> t) & 1) && ctx->needs_input_grad(edge++)) needs |= int64_t{1} << t;
    return needs;
  }
};

}  // namespace

AttentionResult attention(const AttentionTerms& terms, const AttentionCall& call) {
  const auto present = drop_absent(terms);
  TORCH_CHECK(!present.tensors.empty(),
              "attention: expected terms, got none; pass q, k and v, or relative terms");
  const bool needs_grad = at::GradMode::is_enabled() &&
                          std::any_of(present.tensors.begin(), present.tensors.end(),
                                      [](const at::Tensor& t) { return t.requires_grad(); });
  if (!needs_grad) {
    auto forward_call = call;
    forward_call.workspace = 0;  // there is no backward to save encodings for
    at::AutoDispatchBelowADInplaceOrView below;
    return call_forward(terms, forward_call);
  }
  const auto outputs =
      AttentionFunction::apply(at::TensorList(present.tensors), present.present, call);
  return {outputs[0], outputs[1], outputs[2], outputs[3]};
}

at::Tensor dropout_mask(double p, const at::Tensor& x, const AttentionCall& call,
                        const at::Generator& generator) {
  TORCH_CHECK(p >= 0 && p < 1, "dropout: expected a probability in [0, 1), got ", p);
  if (p == 0) return {};
  TORCH_CHECK(x.defined() && x.dim() == 3, "dropout: expected x [B, N, C]");
  const auto& rows = call.pairs.rows;
  const auto tokens = x.sym_size(1);
  const auto queries = rows.empty() ? tokens : c10::SymInt(static_cast<int64_t>(rows.size()));
  return at::empty_symint({x.sym_size(0), call.heads, queries, tokens},
                          x.options().requires_grad(false))
      .bernoulli_(1 - p, optional(generator))
      .div_(1 - p);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<AttentionForward>(m, kAttentionForward,
                                {forward_op<forward_portable>, attention_cpu(),
                                 forward_op<forward_meta>, forward_op<attention>});
  register_op<AttentionBackward>(m, kAttentionBackward,
                                 {backward_op<attention_backward_portable>,
                                  attention_backward_cpu(), backward_op<backward_meta>, nullptr});
}

}  // namespace translution
