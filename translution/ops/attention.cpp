#include "translution/ops/attention.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>

#include "translution/ops/attention_cpu.h"
#include "translution/ops/attention_impl.h"
#include "translution/ops/attention_portable.h"
#include "translution/ops/compat.h"

namespace translution {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Outputs = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using Gradients = std::vector<at::Tensor>;

AttentionTerms to_terms(const OptionalTensorList& list) {
  TORCH_CHECK(list.size() == kTermCount, "attention: wanted a list of ", kTermCount, " terms, got ",
              list.size());
  AttentionTerms terms;
  for (int t = 0; t < kTermCount; ++t) terms.*kTermFields[t] = value_or_undefined(list.get(t));
  return terms;
}

OptionalTensorList to_list(const AttentionTerms& terms) {
  OptionalTensorList list;
  for (const auto field : kTermFields) list.push_back(optional(terms.*field));
  return list;
}

AttentionSetting to_setting(const OptionalTensor& runs, const OptionalTensor& rows,
                            const OptionalTensor& keep, int64_t heads, double scale, bool causal,
                            int64_t workspace = 0) {
  return {value_or_undefined(runs),
          value_or_undefined(rows),
          value_or_undefined(keep),
          heads,
          scale,
          causal,
          workspace};
}

Outputs to_outputs(const AttentionResult& r) {
  return {r.out, r.relative_out, r.attention, r.kept};
}

// --- calls through the dispatcher

Outputs call_forward(const AttentionTerms& terms, const AttentionSetting& s) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("translution::attention", "")
          .typed<Outputs(const OptionalTensorList&, const OptionalTensor&, const OptionalTensor&,
                         const OptionalTensor&, int64_t, double, bool, int64_t)>();
  return op.call(to_list(terms), optional(s.runs), optional(s.rows), optional(s.keep), s.heads,
                 s.scale, s.causal, s.workspace);
}

Gradients call_backward(const at::Tensor& d_out, const at::Tensor& d_relative_out,
                        const at::Tensor& attention, const at::Tensor& kept,
                        const AttentionTerms& terms, const AttentionSetting& s, int64_t needs) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("translution::attention_backward", "")
          .typed<Gradients(const OptionalTensor&, const OptionalTensor&, const at::Tensor&,
                           const at::Tensor&, const OptionalTensorList&, const OptionalTensor&,
                           const OptionalTensor&, const OptionalTensor&, int64_t, double, bool,
                           int64_t)>();
  return op.call(optional(d_out), optional(d_relative_out), attention, kept, to_list(terms),
                 optional(s.runs), optional(s.rows), optional(s.keep), s.heads, s.scale, s.causal,
                 needs);
}

// --- implementations by device

Outputs forward_portable(const OptionalTensorList& list, const OptionalTensor& runs,
                         const OptionalTensor& rows, const OptionalTensor& keep, int64_t heads,
                         double scale, bool causal, int64_t) {
  const auto terms = to_terms(list);
  const auto setting = to_setting(runs, rows, keep, heads, scale, causal);
  check_attention(terms, setting);
  return to_outputs(attention_portable(terms, setting));
}

Outputs forward_cpu(const OptionalTensorList& list, const OptionalTensor& runs,
                    const OptionalTensor& rows, const OptionalTensor& keep, int64_t heads,
                    double scale, bool causal, int64_t workspace) {
  const auto terms = to_terms(list);
  const auto setting = to_setting(runs, rows, keep, heads, scale, causal, workspace);
  check_attention(terms, setting);
  return to_outputs(fused_supports(terms) ? attention_fused(terms, setting)
                                          : attention_portable(terms, setting));
}

Outputs forward_meta(const OptionalTensorList& list, const OptionalTensor& runs,
                     const OptionalTensor& rows, const OptionalTensor& keep, int64_t heads,
                     double scale, bool causal, int64_t) {
  const auto terms = to_terms(list);
  const auto size = check_attention(terms, to_setting(runs, rows, keep, heads, scale, causal));
  const auto options = (terms.v.defined()       ? terms.v
                        : terms.rel_v.defined() ? terms.rel_v
                                                : terms.table_v)
                           .options();
  const auto output = [&](int64_t width) {
    return width > 0 ? at::empty({size.batch, size.queries, width}, options)
                     : at::empty({0}, options);
  };
  return {output(size.out_width), output(size.relative_width),
          at::empty({size.batch, size.heads, size.queries, size.tokens}, options), output(0)};
}

Gradients without_undefined(TermGradients grads, const at::TensorOptions& options) {
  for (auto& grad : grads)
    if (!grad.defined()) grad = at::empty({0}, options);
  return {grads.begin(), grads.end()};
}

Gradients backward_portable(const OptionalTensor& d_out, const OptionalTensor& d_relative_out,
                            const at::Tensor& attention, const at::Tensor&,
                            const OptionalTensorList& list, const OptionalTensor& runs,
                            const OptionalTensor& rows, const OptionalTensor& keep, int64_t heads,
                            double scale, bool causal, int64_t needs) {
  const int64_t joined =
      (needs & kJoinK ? int64_t{1} << kRelK : 0) | (needs & kJoinV ? int64_t{1} << kRelV : 0);
  auto grads = attention_backward_portable(
      value_or_undefined(d_out), value_or_undefined(d_relative_out), attention, to_terms(list),
      to_setting(runs, rows, keep, heads, scale, causal), needs | joined);
  for (const int term : {kRelK, kRelV}) {
    if (!((joined >> term) & 1)) continue;
    grads[kRelQ] = grads[kRelQ] + grads[term];
    grads[term] = at::Tensor();
  }
  return without_undefined(grads, attention.options());
}

Gradients backward_cpu(const OptionalTensor& d_out, const OptionalTensor& d_relative_out,
                       const at::Tensor& attention, const at::Tensor& kept,
                       const OptionalTensorList& list, const OptionalTensor& runs,
                       const OptionalTensor& rows, const OptionalTensor& keep, int64_t heads,
                       double scale, bool causal, int64_t needs) {
  const auto terms = to_terms(list);
  if (!fused_supports(terms))
    return backward_portable(d_out, d_relative_out, attention, kept, list, runs, rows, keep, heads,
                             scale, causal, needs);
  return without_undefined(
      attention_backward_fused(value_or_undefined(d_out), value_or_undefined(d_relative_out),
                               attention, kept, terms,
                               to_setting(runs, rows, keep, heads, scale, causal), needs),
      attention.options());
}

Gradients backward_meta(const OptionalTensor&, const OptionalTensor&, const at::Tensor& attention,
                        const at::Tensor&, const OptionalTensorList& list, const OptionalTensor&,
                        const OptionalTensor&, const OptionalTensor&, int64_t, double, bool,
                        int64_t needs) {
  const auto terms = to_terms(list);
  TermGradients grads;
  for (int t = 0; t < kTermCount; ++t)
    if ((needs >> t) & 1) grads[t] = at::empty_like(terms.*kTermFields[t]);
  return without_undefined(grads, attention.options());
}

// --- autograd

// Autograd wants defined tensors, so the absent terms are dropped on the way in; bit t of
// `present` tells whether term t is there.
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

  static variable_list forward(AutogradContext* ctx, at::TensorList tensors, int64_t present,
                               const AttentionSetting& setting) {
    at::AutoDispatchBelowADInplaceOrView guard;
    const auto [out, relative_out, attention, kept] =
        call_forward(restore_absent(tensors, present), setting);
    auto saved = tensors.vec();
    saved.insert(saved.end(), {setting.runs, setting.rows, setting.keep, attention, kept});
    ctx->save_for_backward(saved);
    ctx->saved_data["present"] = present;
    ctx->saved_data["joins"] = find_joins(restore_absent(tensors, present));
    ctx->saved_data["heads"] = setting.heads;
    ctx->saved_data["scale"] = setting.scale;
    ctx->saved_data["causal"] = setting.causal;
    ctx->mark_non_differentiable({attention, kept});
    ctx->set_materialize_grads(false);  // or zeros as large as `kept` would be made for it
    return {out, relative_out, attention, kept};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outputs) {
    const auto saved = ctx->get_saved_variables();
    const size_t count = saved.size() - 5;  // behind the terms: runs, rows, keep, attention, kept
    const int64_t present = ctx->saved_data["present"].toInt();
    const auto terms = restore_absent(at::ArrayRef<at::Tensor>(saved).slice(0, count), present);
    const at::Tensor* rest = saved.data() + count;
    const AttentionSetting setting{rest[0],
                                   rest[1],
                                   rest[2],
                                   ctx->saved_data["heads"].toInt(),
                                   ctx->saved_data["scale"].toDouble(),
                                   ctx->saved_data["causal"].toBool()};
    const bool relative = terms.rel_v.defined() || terms.table_v.defined();
    int64_t needs = joined(needed_terms(ctx, present), ctx->saved_data["joins"].toInt());
    if (!d_outputs[0].defined()) needs &= ~(int64_t{1} << kV);  // v has no other way out
    const auto grads = call_backward(terms.v.defined() ? d_outputs[0] : at::Tensor(),
                                     relative ? d_outputs[1] : at::Tensor(), rest[3], rest[4],
                                     terms, setting, needs);
    variable_list result;
    for (int t = 0; t < kTermCount; ++t)
      if ((present >> t) & 1) result.push_back((needs >> t) & 1 ? grads[t] : at::Tensor());
    result.resize(count + 2);  // none for `present` and the setting
    return result;
  }

 private:
  static int64_t find_joins(const AttentionTerms& t) {
    if (!t.rel_q.defined()) return 0;
    return (t.rel_k.is_same(t.rel_q) ? kJoinK : 0) | (t.rel_v.is_same(t.rel_q) ? kJoinV : 0);
  }

  // Terms that are one tensor are needed or not needed together.
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

bool any_requires_grad(const AttentionTerms& terms) {
  for (const auto field : kTermFields)
    if ((terms.*field).defined() && (terms.*field).requires_grad()) return true;
  return false;
}

Outputs forward_autograd(const OptionalTensorList& list, const OptionalTensor& runs,
                         const OptionalTensor& rows, const OptionalTensor& keep, int64_t heads,
                         double scale, bool causal, int64_t workspace) {
  const auto terms = to_terms(list);
  const bool learns = at::GradMode::is_enabled() && any_requires_grad(terms);
  const auto present = drop_absent(terms);
  const auto outputs = AttentionFunction::apply(
      at::TensorList(present.tensors), present.present,
      to_setting(runs, rows, keep, heads, scale, causal, learns ? workspace : 0));
  return {outputs[0], outputs[1], outputs[2], outputs[3]};
}

Gradients backward_autograd(const OptionalTensor& d_out, const OptionalTensor& d_relative_out,
                            const at::Tensor& attention, const at::Tensor& kept,
                            const OptionalTensorList& list, const OptionalTensor& runs,
                            const OptionalTensor& rows, const OptionalTensor& keep, int64_t heads,
                            double scale, bool causal, int64_t needs) {
  const auto terms = to_terms(list);
  refuse_second_derivative("attention",
                           {value_or_undefined(d_out), value_or_undefined(d_relative_out)});
  refuse_second_derivative("attention", drop_absent(terms).tensors);
  at::AutoDispatchBelowADInplaceOrView guard;
  return call_backward(value_or_undefined(d_out), value_or_undefined(d_relative_out), attention,
                       kept, terms, to_setting(runs, rows, keep, heads, scale, causal), needs);
}

}  // namespace

AttentionResult attention(const AttentionTerms& terms, const AttentionSetting& setting) {
  // The dispatcher needs a tensor to choose a device by.
  const auto given = [&](at::Tensor AttentionTerms::*field) { return (terms.*field).defined(); };
  TORCH_CHECK(std::any_of(std::begin(kTermFields), std::end(kTermFields), given),
              "attention: every term is missing; hand in q, k and v or relative ones");
  const auto [out, relative_out, map, kept] = call_forward(terms, setting);
  return {out, relative_out, map, kept};
}

at::Tensor dropout_mask(double p, at::IntArrayRef shape, const at::TensorOptions& options) {
  TORCH_CHECK(p >= 0 && p < 1, "dropout: wanted a probability in [0, 1), got ", p);
  if (p == 0) return {};
  return at::empty(shape, options).bernoulli_(1 - p).div_(1 - p);
}

// `terms` are numbered as in attention_impl.h; bit t of `needs` asks for the gradient of term t.
TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def(
      "attention(Tensor?[] terms, Tensor? runs, Tensor? rows, Tensor? keep, int heads, "
      "float scale, bool causal, int workspace=0) -> (Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "attention_backward(Tensor? d_out, Tensor? d_relative_out, Tensor attention, Tensor kept, "
      "Tensor?[] terms, Tensor? runs, Tensor? rows, Tensor? keep, int heads, float scale, "
      "bool causal, int needs) -> Tensor[]");
}
TORCH_LIBRARY_IMPL(translution, CompositeExplicitAutograd, m) {
  m.impl("attention", forward_portable);
  m.impl("attention_backward", backward_portable);
}
TORCH_LIBRARY_IMPL(translution, CPU, m) {
  m.impl("attention", forward_cpu);
  m.impl("attention_backward", backward_cpu);
}
TORCH_LIBRARY_IMPL(translution, Meta, m) {
  m.impl("attention", forward_meta);
  m.impl("attention_backward", backward_meta);
}
TORCH_LIBRARY_IMPL(translution, Autograd, m) {
  m.impl("attention", forward_autograd);
  m.impl("attention_backward", backward_autograd);
}

}  // namespace translution
