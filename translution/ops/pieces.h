#pragma once

#include <ATen/ATen.h>

#include <algorithm>

#include "translution/ops/parallel.h"
#include "translution/ops/runtime.h"

namespace translution {

/// Calls apply(result, x…), an elementwise function of LibTorch, on pieces of tensors of one size.
/// LibTorch itself splits the tensors by the number of threads and computes the remainder of each
/// part with scalar code, which rounds tanh, erf and others differently from its vector code. Here
/// the pieces, and therefore the bits, are the same for any number of threads.
template <typename Apply, typename... Tensors>
at::Tensor in_pieces(const Apply& apply, const at::Tensor& first, const Tensors&... others) {
  constexpr int64_t kPieceNumbers = 1 << 16;
  auto result = at::empty_like(first, at::MemoryFormat::Contiguous);
  const int64_t numbers = first.numel();
  const auto flat = [](const at::Tensor& x) { return x.contiguous().view({-1}); };
  const auto apply_to = [&](const at::Tensor& out, const auto&... x) {
    parallel_each((numbers + kPieceNumbers - 1) / kPieceNumbers, [&] {
      return [&](int64_t piece) {
        at::AutoDispatchBelowADInplaceOrView below;  // each thread has its own dispatch state
        const int64_t begin = piece * kPieceNumbers;
        const int64_t count = std::min(kPieceNumbers, numbers - begin);
        auto to = out.narrow(0, begin, count);
        apply(to, x.narrow(0, begin, count)...);
      };
    });
  };
  apply_to(result.view({-1}), flat(first), flat(others)...);
  return result;
}

/// Returns whether to use in_pieces for x: only on the CPU, where LibTorch splits by threads.
inline bool takes_pieces(const at::Tensor& x) {
  return x.device().is_cpu() && runtime().fused() && x.numel() > 0;
}

}  // namespace translution
