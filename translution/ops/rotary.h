#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "translution/core/export.h"
#include "translution/core/position.h"

namespace translution {

/// Angles of the rotary encoding, [N, D/2]. With A axes, each axis in turn has D/(2A) frequencies
/// base^(-2f*A/D), multiplied by the token's coordinate on that axis. A class token comes first and
/// has angle 0: it is not rotated. D must be a multiple of 2A. `type` is the type of the result and
/// of all intermediate results.
TRANSLUTION_API at::Tensor rotary_angles(const std::vector<int64_t>& grid, bool cls,
                                         int64_t dim_head, double base = 10000.0,
                                         Angles type = Angles::in_double);

/// Rotates channel d against channel d + D/2 of every head by the token's angle.
/// x [B,N,H*D]; angles [N,D/2] in any float type (cosine and sine are taken in that type).
TRANSLUTION_API at::Tensor rotary(const at::Tensor& x, const at::Tensor& angles, int64_t heads);

}  // namespace translution
