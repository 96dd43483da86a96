#include "translution/ops/gelu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "translution/ops/compat.h"
#include "translution/ops/pieces.h"

namespace translution {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const char* gelu_kind(bool tanh) { return tanh ? "tanh" : "none"; }

class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, bool tanh) {
    ctx->save_for_backward({x});
    ctx->saved_data["tanh"] = tanh;
    at::AutoDispatchBelowADInplaceOrView guard;
    return in_pieces([tanh](at::Tensor& out,
                            const at::Tensor& piece) { at::gelu_out(out, piece, gelu_kind(tanh)); },
                     x);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d) {
    const auto x = ctx->get_saved_variables()[0];
    refuse_second_derivative("gelu", {d[0], x});
    const bool tanh = ctx->saved_data["tanh"].toBool();
    at::AutoDispatchBelowADInplaceOrView guard;
    return {in_pieces(
                [tanh](at::Tensor& out, const at::Tensor& piece, const at::Tensor& above) {
                  at::gelu_backward_out(out, above, piece, gelu_kind(tanh));
                },
                x, d[0]),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor gelu(const at::Tensor& x, bool tanh) {
  TORCH_CHECK(x.defined(), "gelu: expected a tensor, got none");
  return takes_pieces(x) ? GeluFunction::apply(x, tanh) : at::gelu(x, gelu_kind(tanh));
}

// Made of calls that know every device and Meta.
TORCH_LIBRARY_FRAGMENT(translution, m) { m.def("gelu(Tensor x, bool tanh) -> Tensor", gelu); }

}  // namespace translution
