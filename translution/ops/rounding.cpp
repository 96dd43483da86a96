#include "translution/ops/rounding.h"

#include <ATen/ATen.h>

#include "translution/kernels/bf16.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

constexpr int64_t kMinRounded = 1 << 15;  // minimum work for a thread

}  // namespace

bool multiplies_bf16(Precision precision, const at::Tensor& x) {
  return precision == Precision::bf16 || x.scalar_type() == at::kBFloat16;
}

at::Tensor to_bf16(const at::Tensor& x) {
  if (x.scalar_type() == at::kBFloat16) return x;
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) return x.to(at::kBFloat16);
  const auto dense = x.contiguous();
  auto out = large_empty(x.sizes(), x.options().dtype(at::kBFloat16));
  const auto* from = dense.data_ptr<float>();
  auto* to = static_cast<kernels::Bf16*>(out.data_ptr());
  parallel_ranges(x.numel(), kMinRounded, [&](int64_t begin, int64_t end) {
    kernels::bf16_row_ops().round(from + begin, end - begin, to + begin);
  });
  return out;
}

at::Tensor rounded(const at::Tensor& x) {
  // Contiguous, as from to_bf16: the bits of LibTorch's products depend on the strides.
  return x.defined() ? x.contiguous().to(at::kBFloat16).to(at::kFloat) : x;
}

}  // namespace translution
