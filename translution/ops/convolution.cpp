#include "translution/ops/convolution.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>

#include "translution/ops/check.h"
#include "translution/ops/compat.h"
#include "translution/ops/pair_groups.h"
#include "translution/ops/parallel.h"
#include "translution/ops/relative_side.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Forward = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           const OptionalTensor&, bool);
using Backward = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                    const at::Tensor&, const at::Tensor&,
                                                    const OptionalTensor&, bool, int64_t);

constexpr const char* kOp = "convolution";
// Which gradients backward is asked for.
constexpr int64_t kNeedsX = 1, kNeedsWeight = 2;

// Checks the call; returns how many rows the result has.
int64_t check_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& runs,
                          const OptionalTensor& rows) {
  Checker check(kOp);
  check.tensor("x", x, 3, "[B, N, C]");
  TORCH_CHECK(x.size(1) > 0, kOp, ": wanted one or more tokens, x is ", x.sizes());
  check.tensor("weight", weight, 3, "[slots, C, width], one matrix per slot");
  check.size("weight", weight, 1, x.size(2), "the channels of x");
  if (rows.has_value()) check_rows(kOp, *rows, x.size(1));
  check_runs(kOp, runs, {x.size(1), x.size(1), weight.size(0)});
  return rows.has_value() ? rows->size(0) : x.size(1);
}

// Every score is one: the weights of the pairs [P,1,1], zero where causal leaves a pair out.
at::Tensor unit_weights(const Pairs& pairs, const OptionalTensor& rows, bool causal,
                        const at::TensorOptions& options) {
  const int64_t P = pairs.place.size(0);
  if (!causal) return at::ones({P, 1, 1}, options);
  auto i = pairs.place.div(pairs.tokens, "floor");
  if (rows.has_value()) i = rows->to(i.device()).index_select(0, i);
  return pairs.place.remainder(pairs.tokens).le(i).to(options.dtype()).view({P, 1, 1});
}

struct Problem {
  Pairs pairs;
  at::Tensor weights;  // [P,1,1]
  RelativeSide side;

  Problem(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& runs,
          const OptionalTensor& rows, bool causal)
      : pairs(group_pairs(select_rows(runs, value_or_undefined(rows)),
                          rows.has_value() ? rows->size(0) : x.size(1), x.size(1), x.device())),
        weights(unit_weights(pairs, rows, causal, x.options())),
        side(x, weight, x.size(0)) {}

  at::Tensor weights_of(const PairGroup& group, int64_t batch) const {
    return weights.narrow(0, group.begin, group.count).expand({group.count, batch, 1});
  }
};

// While it lives, a group whose sums are products of LibTorch's has one thread for them: LibTorch
// cuts products by the number of threads. The few groups of a class token are such.
struct SteadyProducts {
  explicit SteadyProducts(const PairGroup& group) {
    if (!group.matching) alone.emplace();
  }
  std::optional<OneThread> alone;
};

at::Tensor forward_portable(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& runs,
                            const OptionalTensor& rows, bool causal) {
  const int64_t queries = check_convolution(x, weight, runs, rows);
  const Problem problem(x, weight, runs, rows, causal);
  auto out = at::zeros({queries, x.size(0), weight.size(2)}, x.options());
  for (const PairGroup& group : problem.pairs.groups) {
    const auto v = problem.side.encode(group.slot, group.keys);
    const SteadyProducts steady(group);
    out.index_add_(0, group.queries, pair_mix(group, problem.weights_of(group, x.size(0)), v));
  }
  return out.transpose(0, 1).contiguous();
}

at::Tensor forward_meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& runs,
                        const OptionalTensor& rows, bool) {
  const int64_t queries = check_convolution(x, weight, runs, rows);
  return at::empty({x.size(0), queries, weight.size(2)}, x.options());
}

std::tuple<at::Tensor, at::Tensor> backward_portable(const at::Tensor& d_out, const at::Tensor& x,
                                                     const at::Tensor& weight,
                                                     const at::Tensor& runs,
                                                     const OptionalTensor& rows, bool causal,
                                                     int64_t needs) {
  Problem problem(x, weight, runs, rows, causal);
  problem.side.start_backward(needs & kNeedsX, needs & kNeedsWeight);
  const auto d_tokens = d_out.transpose(0, 1);  // [Nq,B,C']
  for (const PairGroup& group : problem.pairs.groups) {
    const auto v = problem.side.encode(group.slot, group.keys);
    at::Tensor dv;
    {
      const SteadyProducts steady(group);
      dv = pair_mix_backward(group, d_tokens.index_select(0, group.queries),
                             problem.weights_of(group, x.size(0)), v)
               .second;
    }
    problem.side.add_gradient(group.slot, group.keys, dv);
  }
  const auto nothing = at::empty({0}, x.options());
  return {needs & kNeedsX ? problem.side.dx() : nothing,
          needs & kNeedsWeight ? problem.side.dtable() : nothing};
}

std::tuple<at::Tensor, at::Tensor> backward_meta(const at::Tensor&, const at::Tensor& x,
                                                 const at::Tensor& weight, const at::Tensor&,
                                                 const OptionalTensor&, bool, int64_t needs) {
  const auto nothing = at::empty({0}, x.options());
  return {needs & kNeedsX ? at::empty_like(x) : nothing,
          needs & kNeedsWeight ? at::empty_like(weight) : nothing};
}

at::Tensor call_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& runs,
                        const OptionalTensor& rows, bool causal) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("translution::convolution", "")
                             .typed<Forward>();
  return op.call(x, weight, runs, rows, causal);
}

std::tuple<at::Tensor, at::Tensor> call_backward(const at::Tensor& d_out, const at::Tensor& x,
                                                 const at::Tensor& weight, const at::Tensor& runs,
                                                 const OptionalTensor& rows, bool causal,
                                                 int64_t needs) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("translution::convolution_backward", "")
                             .typed<Backward>();
  return op.call(d_out, x, weight, runs, rows, causal, needs);
}

class ConvolutionFunction : public torch::autograd::Function<ConvolutionFunction> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& runs, const OptionalTensor& rows, bool causal) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x, weight, runs, value_or_undefined(rows)});
    ctx->saved_data["causal"] = causal;
    return call_forward(x, weight, runs, rows, causal);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outputs) {
    const auto saved = ctx->get_saved_variables();
    const int64_t needs =
        (ctx->needs_input_grad(0) ? kNeedsX : 0) | (ctx->needs_input_grad(1) ? kNeedsWeight : 0);
    const auto [dx, dweight] =
        call_backward(d_outputs[0], saved[0], saved[1], saved[2], optional(saved[3]),
                      ctx->saved_data["causal"].toBool(), needs);
    return {needs & kNeedsX ? dx : at::Tensor(), needs & kNeedsWeight ? dweight : at::Tensor(),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor forward_autograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& runs,
                            const OptionalTensor& rows, bool causal) {
  return ConvolutionFunction::apply(x, weight, runs, rows, causal);
}

std::tuple<at::Tensor, at::Tensor> backward_autograd(const at::Tensor& d_out, const at::Tensor& x,
                                                     const at::Tensor& weight,
                                                     const at::Tensor& runs,
                                                     const OptionalTensor& rows, bool causal,
                                                     int64_t needs) {
  refuse_second_derivative(kOp, {d_out, x, weight});
  at::AutoDispatchBelowADInplaceOrView guard;
  return call_backward(d_out, x, weight, runs, rows, causal, needs);
}

}  // namespace

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& runs,
                       const at::Tensor& rows, bool causal) {
  // The dispatcher knows no undefined tensors.
  TORCH_CHECK(x.defined(), kOp, ": x [B, N, C] is missing");
  TORCH_CHECK(weight.defined(), kOp, ": weight [slots, C, width] is missing");
  TORCH_CHECK(runs.defined(), kOp,
              ": the runs of the offset table are missing; hand in runs_to_tensor(table.runs())");
  return call_forward(x, weight, runs, optional(rows), causal);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def(
      "convolution(Tensor x, Tensor weight, Tensor runs, Tensor? rows=None, bool causal=False) "
      "-> Tensor");
  m.def(
      "convolution_backward(Tensor d_out, Tensor x, Tensor weight, Tensor runs, Tensor? rows, "
      "bool causal, int needs=3) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(translution, CompositeExplicitAutograd, m) {
  m.impl("convolution", forward_portable);
  m.impl("convolution_backward", backward_portable);
}
TORCH_LIBRARY_IMPL(translution, Meta, m) {
  m.impl("convolution", forward_meta);
  m.impl("convolution_backward", backward_meta);
}
TORCH_LIBRARY_IMPL(translution, Autograd, m) {
  m.impl("convolution", forward_autograd);
  m.impl("convolution_backward", backward_autograd);
}

}  // namespace translution
