#pragma once

#include <ATen/core/Tensor.h>

namespace translution {

/// Convolution over the token grid, the end of the family where every score is one:
///   out_i = sum_j x_j W[slot(i, j)]      over the pairs of `runs`
/// x [B,N,C]; weight [M,C,C']; runs from a table with Sharing::window; result [B,Nq,C'].
/// `rows` (undefined: all) are the tokens whose outputs are computed; `causal` leaves out j > i.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& runs,
                       const at::Tensor& rows = {}, bool causal = false);

}  // namespace translution
