#include "translution/ops/gelu.h"

#include <ATen/ATen.h>

#include "translution/ops/pieces.h"
#include "translution/ops/register.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;
using GeluForward = at::Tensor(const at::Tensor& x, bool tanh);
using GeluBackward = at::Tensor(const at::Tensor& d, const at::Tensor& x, bool tanh);

const char* gelu_kind(bool tanh) { return tanh ? "tanh" : "none"; }

at::Tensor gelu_portable(const at::Tensor& x, bool tanh) {
  return at::gelu(x.contiguous(), gelu_kind(tanh));
}

at::Tensor gelu_cpu(const at::Tensor& x, bool tanh) {
  if (!takes_pieces(x)) return gelu_portable(x, tanh);
  return in_pieces([tanh](at::Tensor& out,
                          const at::Tensor& piece) { at::gelu_out(out, piece, gelu_kind(tanh)); },
                   x);
}

at::Tensor gelu_meta(const at::Tensor& x, bool) { return empty_of(x); }

at::Tensor gelu_backward_portable(const at::Tensor& d, const at::Tensor& x, bool tanh) {
  return at::gelu_backward(d.contiguous(), x.contiguous(), gelu_kind(tanh));
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

at::Tensor gelu_autograd(const at::Tensor& x, bool tanh) {
  const Differentiable call("gelu", {x});
  const auto out = call.below([&] { return gelu(x, tanh); });
  call.finish({out}, {x}, [tanh](const BackwardCall& b) -> Tensors {
    static const Op<GeluBackward> op("translution::gelu_backward");
    return {op(b.d[0], b.saved[0], tanh)};
  });
  return out;
}

}  // namespace

at::Tensor gelu(const at::Tensor& x, bool tanh) {
  static const Op<GeluForward> op("translution::gelu");
  TORCH_CHECK(x.defined(), "gelu: expected a tensor, got none");
  return op(x, tanh);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<GeluForward>(m, "gelu(Tensor x, bool tanh) -> Tensor",
                           {gelu_portable, gelu_cpu, gelu_meta, gelu_autograd, gelu_portable});
  register_op<GeluBackward>(m, "gelu_backward(Tensor d, Tensor x, bool tanh) -> Tensor",
                            {gelu_backward_portable, gelu_backward_cpu, gelu_backward_meta, nullptr,
                             gelu_backward_portable});
}

}  // namespace translution
