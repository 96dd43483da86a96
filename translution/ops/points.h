#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "translution/core/export.h"
#include "translution/ops/pair_list.h"
#include "translution/ops/point_encode.h"

namespace translution {

/// The rows of a batch of clouds, one cloud after another.
struct PackedPoints {
  at::Tensor x;          ///< [R,dim]
  at::Tensor positions;  ///< [R,axes]
  at::Tensor first;      ///< int64 [clouds + 1]: cloud c has rows first[c] … first[c+1] - 1
};

/// Packs padded clouds x [B,N,dim], positions [B,N,axes], mask bool [B,N], true for a token; or
/// takes packed ones x [R,dim], positions [R,axes], batch int64 [R], the cloud of each row in
/// ascending order. Without mask there is no padding, without batch a single cloud. Clouds without
/// tokens are left out.
TRANSLUTION_API PackedPoints pack_points(const at::Tensor& x, const at::Tensor& positions,
                                         const at::Tensor& mask, const at::Tensor& batch,
                                         int64_t dim, int64_t axes);

/// The rows of padded clouds in their places; zeros at padding.
TRANSLUTION_API at::Tensor unpack_points(const at::Tensor& rows, const at::Tensor& mask,
                                         c10::SymInt clouds, c10::SymInt tokens);

/// Which points attend to each other, and on what lattice.
struct PointRule {
  int64_t radius = 1;      ///< lattice points to each side
  int64_t neighbours = 0;  ///< nearest points that a point attends to; 0: all
  double cutoff = 0;       ///< the farthest point that a point attends to; 0: any
  bool window = false;     ///< drops pairs beyond the lattice; otherwise moved to its border
  bool cls = false;        ///< the first token of each cloud has no position and is paired with all
  bool distances = false;  ///< offsets are distances, on a lattice with one axis
};

/// The pairs of a call, and the rows that encodings with matrices on the lattice have.
struct PointPairs {
  PairList list;
  SlotRows query, key, value;
};

/// The pairs of packed points: those of the rule, or those given by the caller as row numbers, in
/// any order. Keys are sorted within each query. Positions and spacing have gradients.
TRANSLUTION_API PointPairs list_points(const at::Tensor& positions, const at::Tensor& spacing,
                                       const at::Tensor& first, const PointRule& rule,
                                       const at::Tensor& query = {}, const at::Tensor& key = {});

}  // namespace translution
