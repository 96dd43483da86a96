#include "translution/ops/rotary.h"

#include <ATen/ATen.h>

#include <cmath>

#include "translution/core/error.h"
#include "translution/core/offsets.h"
#include "translution/ops/check.h"
#include "translution/ops/pieces.h"
#include "translution/ops/register.h"

namespace translution {

using namespace detail;

namespace {

using Tensors = std::vector<at::Tensor>;
using Rotary = at::Tensor(const at::Tensor&, const at::Tensor&, int64_t);

constexpr const char* kRotary = "rotary";

void check_rotary(const at::Tensor& x, const at::Tensor& angles, int64_t heads) {
  TORCH_CHECK(heads > 0, kRotary, ": expected one or more heads, got ", heads);
  Checker check(kRotary);
  check.tensor("x", x, 3, "[B, N, heads * D]");
  const auto width = x.sym_size(2);
  TORCH_CHECK(width > 0 && width % (2 * heads) == 0, kRotary, ": the width ", width,
              " of x does not split into pairs for ", heads, " heads; expected a multiple of ",
              2 * heads);
  TORCH_CHECK(angles.dim() == 2 && at::isFloatingType(angles.scalar_type()), kRotary,
              ": angles must be a float tensor [N, D / 2], got ", angles.scalar_type(), " ",
              angles.sym_sizes());
  check.size("angles", angles, 0, x.sym_size(1), "the tokens of x");
  check.size("angles", angles, 1, width / (2 * heads), "half the channels of a head");
}

// cosine and sine are [N,1,D/2].
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine,
                  int64_t heads) {
  const auto halves =
      x.reshape({x.size(0), x.size(1), heads, 2, x.size(2) / (2 * heads)}).unbind(3);
  return at::stack({halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine},
                   3)
      .reshape(x.sizes());
}

at::Tensor rotary_plain(const at::Tensor& x, const at::Tensor& angles, int64_t heads) {
  check_rotary(x, angles, heads);
  const auto angle = angles.unsqueeze(1);
  return rotate(x, angle.cos().to(x.device(), x.scalar_type()),
                angle.sin().to(x.device(), x.scalar_type()), heads);
}

at::Tensor rotary_portable(const at::Tensor& x, const at::Tensor& angles, int64_t heads) {
  check_rotary(x, angles, heads);
  const auto angle = angles.unsqueeze(1);  // [N,1,D/2]
  // Computed on the device of the angles, because the device of x may not support double.
  const auto cosine = (takes_pieces(angle) ? in_pieces(at::cos_out, angle) : angle.cos())
                          .to(x.device(), x.scalar_type());
  const auto sine = (takes_pieces(angle) ? in_pieces(at::sin_out, angle) : angle.sin())
                        .to(x.device(), x.scalar_type());
  return rotate(x, cosine, sine, heads);
}

at::Tensor rotary_meta(const at::Tensor& x, const at::Tensor& angles, int64_t heads) {
  check_rotary(x, angles, heads);
  return empty_of(x);
}

// The gradient of a rotation is the inverse rotation, so only the angles are saved.
at::Tensor rotary_autograd(const at::Tensor& x, const at::Tensor& angles, int64_t heads) {
  TORCH_CHECK(!angles.requires_grad(), kRotary,
              ": angles are fixed and take no gradient; detach them");
  const Differentiable call(kRotary, {x});
  const auto out = call.below([&] { return rotary(x, angles, heads); });
  call.finish({out}, {angles}, [heads](const BackwardCall& b) -> Tensors {
    return {rotary(b.d[0], -b.saved[0], heads)};
  });
  return out;
}

}  // namespace

at::Tensor rotary_angles(const std::vector<int64_t>& grid, bool cls, int64_t dim_head, double base,
                         Angles type) {
  const int64_t axes = static_cast<int64_t>(grid.size());
  count_tokens({grid, cls});  // throws for an invalid grid
  require(dim_head > 0 && dim_head % (2 * axes) == 0, "rotary: a head of ", dim_head,
          " channels does not split into pairs for ", axes, " axes; expected a multiple of ",
          2 * axes);
  require(std::isfinite(base) && base > 0, "rotary: expected a finite base above 0, got ", base);
  const int64_t frequencies = dim_head / (2 * axes);
  const auto options =
      at::TensorOptions().dtype(type == Angles::in_double ? at::kDouble : at::kFloat);
  const auto frequency = at::pow(base, at::arange(frequencies, options) / frequencies).reciprocal();
  std::vector<at::Tensor> angles;
  for (int64_t axis = 0; axis < axes; ++axis) {
    std::vector<int64_t> shape(axes, 1);
    shape[axis] = grid[axis];
    const auto coordinate =
        at::arange(grid[axis], options).view(shape).expand(grid).reshape({-1, 1});
    angles.push_back(coordinate * frequency);  // [N, frequencies]
  }
  auto table = at::cat(angles, 1);
  if (cls) table = at::cat({at::zeros({1, dim_head / 2}, options), table});
  return table;
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor& angles, int64_t heads) {
  TORCH_CHECK(x.defined(), kRotary, ": x [B, N, heads * D] is missing");
  TORCH_CHECK(angles.defined(), kRotary, ": angles [N, D / 2] are missing; call rotary_angles");
  static const Op<Rotary> op("translution::rotary");
  return op(x, angles, heads);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<Rotary>(m, "rotary(Tensor x, Tensor angles, int heads) -> Tensor",
                      {rotary_portable, nullptr, rotary_meta, rotary_autograd, rotary_plain});
}

}  // namespace translution
