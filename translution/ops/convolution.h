#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"
#include "translution/core/pairs.h"
#include "translution/core/precision.h"

namespace translution {

/// Convolution over the token grid: the member of the family whose scores are all one.
///   out_i = sum_j x_j W[slot(i, j)]      over the open pairs
/// x [B,N,C]; weight [M,C,C']; pairs with a window, such as "7x7 window=1". Returns [B,Nq,C'].
/// `mask` is key padding, bool [B,N], true for a token: padding contributes nothing. `group` is the
/// group (ops/group.h) that has the other parts of the slots, if the pairs have a part.
TRANSLUTION_API at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight,
                                       const PairsName& pairs,
                                       Precision precision = Precision::float32,
                                       const at::Tensor& mask = {}, const std::string& group = {});

}  // namespace translution
