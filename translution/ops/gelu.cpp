#include "translution/ops/gelu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "translution/ops/pieces.h"
#include "translution/ops/register.h"

namespace translution {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using GeluForward = at::Tensor(const at::Tensor& x, bool tanh);
using GeluBackward = at::Tensor(const at::Tensor& d, const at::Tensor& x, bool tanh);

const char* gelu_kind(bool tanh) { return tanh ? "tanh" : "none"; }

at::Tensor gelu_portable(const at::Tensor& x, bool tanh) { return at::gelu(x, gelu_kind(tanh)); }

at::Tensor gelu_cpu(const at::Tensor& x, bool tanh) {
  if (!takes_pieces(x)) return gelu_portable(x, tanh);
  return in_pieces([tanh](at::Tensor& out,
                          const at::Tensor& piece) { at::gelu_out(out, piece, gelu_kind(tanh)); },
                   x);
}

at::Tensor gelu_meta(const at::Tensor& x, bool) { return empty_of(x); }

at::Tensor gelu_backward_portable(const at::Tensor& d, const at::Tensor& x, bool tanh) {
  return at::gelu_backward(d, x, gelu_kind(tanh));
}

at::Tensor gelu_backward_cpu(const at::Tensor& d, const at::Tensor& x, bool tanh) {
  if (!takes_pieces(x)) return gelu_backward_portable(d, x, tanh);
  return in_pieces(
      [tanh](at::Tensor& out, const at::Tensor& piece, const at::Tensor& d_piece) {
        at::gelu_backward_out(out, d_piece, piece, gelu_kind(tanh));
      },
      x, d);
}

at::Tensor gelu_backward_meta(const at::Tensor&, const at::Tensor& x, bool) { return empty_of(x); }

class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, bool tanh) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({x});
    ctx->saved_data["tanh"] = tanh;
    return gelu(x, tanh);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d) {
    static const Op<GeluBackward> op("translution::gelu_backward");
    return {op(d[0], ctx->get_saved_variables()[0], ctx->saved_data["tanh"].toBool()),
            at::Tensor()};
  }
};

at::Tensor gelu_autograd(const at::Tensor& x, bool tanh) { return GeluFunction::apply(x, tanh); }

}  // namespace

at::Tensor gelu(const at::Tensor& x, bool tanh) {
  static const Op<GeluForward> op("translution::gelu");
  TORCH_CHECK(x.defined(), "gelu: expected a tensor, got none");
  return op(x, tanh);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<GeluForward>(m, "gelu(Tensor x, bool tanh) -> Tensor",
                           {gelu_portable, gelu_cpu, gelu_meta, gelu_autograd});
  register_op<GeluBackward>(
      m, "gelu_backward(Tensor d, Tensor x, bool tanh) -> Tensor",
      {gelu_backward_portable, gelu_backward_cpu, gelu_backward_meta, nullptr});
}

}  // namespace translution
