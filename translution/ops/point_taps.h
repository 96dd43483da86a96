#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include "translution/core/export.h"

namespace translution {

/// The number of slots of a lattice with anchors -radius … radius along each axis.
TRANSLUTION_API int64_t lattice_slots(int64_t axes, int64_t radius);

/// The taps of pairs of points: slots int64 [E,T] and their weights phi [E,T], T = 2^axes.
///
/// The offset u = (position of the query - position of the key) / spacing lies in a cell of the
/// lattice; the corners of the cell are the taps, weighted multilinearly. Slots are numbered in
/// lexicographic order of their anchors, as those of a grid. Beyond the lattice an offset is moved
/// to its border. Positions are [R,axes], `spacing` is [1] or [axes]. phi has the type of
/// `spacing`; offsets are computed in double, so large coordinates may be double. On a plane of the
/// lattice the gradient is that of the cell above, and at the upper border that of the cell
/// below; beyond the border it is zero along that axis.
///
/// Tokens whose `special` is true, bool [R], have no position: class tokens. Their pairs have one
/// tap, a slot behind those of the lattice: both special, only the query, only the key.
TRANSLUTION_API std::pair<at::Tensor, at::Tensor> point_taps(const at::Tensor& positions,
                                                             const at::Tensor& spacing,
                                                             const at::Tensor& query,
                                                             const at::Tensor& key, int64_t radius,
                                                             const at::Tensor& special = {});

}  // namespace translution
