#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include "translution/core/export.h"

namespace translution {

/// Which pairs of points attend to each other, within each cloud of a packed batch: query and key,
/// int64 [E], sorted by both. Cloud c has the tokens first[c] … first[c + 1] - 1 of positions
/// [R,axes]; `first` is int64 [clouds + 1].
///
/// With `neighbours` k > 0, a query has its k nearest points, itself included; of points at the
/// same distance, those with the lower index. With `cutoff` > 0, only those at most that far. With
/// neither, every point. A token whose `special` is true, bool [R], is paired with all of its
/// cloud. No gradient: as points move, pairs appear and disappear, and the output jumps.
TRANSLUTION_API std::pair<at::Tensor, at::Tensor> point_pairs(const at::Tensor& positions,
                                                              const at::Tensor& first,
                                                              int64_t neighbours = 0,
                                                              double cutoff = 0,
                                                              const at::Tensor& special = {});

}  // namespace translution
