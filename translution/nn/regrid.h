#pragma once

#include <torch/nn/module.h>

#include <map>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/offsets.h"

namespace translution {

/// How a weight row for an offset that the old grid did not have is filled.
enum class Fill {
  nearest,  ///< from the nearest offset that it had
  bicubic,  ///< from the old rows, stretched bicubically over the new grid (1 or 2 dimensions)
};

/// What was done to one tensor: how many rows were kept, and how many filled.
struct TRANSLUTION_API RegridNote {
  std::string name;
  int64_t old_rows, new_rows, kept, filled;
  /// "blocks.0.attention.query: 172 -> 292 rows, 172 kept, 120 filled from the nearest"
  std::string str(Fill fill) const;
};

/// Rows of a table [M,…] moved from one offset table to another. Offsets that both have are kept,
/// class-token rows too; new ones are filled; old ones that the new grid lacks are dropped.
/// Both must be relative tables on grids of as many dimensions, alike in class token and causality.
TRANSLUTION_API at::Tensor regrid_offsets(const at::Tensor& table, const OffsetTable& from,
                                          const OffsetTable& to, Fill fill,
                                          RegridNote* note = nullptr);

/// The same for rows per place [N,…], such as an input position embedding.
TRANSLUTION_API at::Tensor regrid_places(const at::Tensor& rows, const OffsetOptions& from,
                                         const OffsetOptions& to, Fill fill,
                                         RegridNote* note = nullptr);

/// Tensors by the names of `named_parameters()`.
using NamedTensors = std::map<std::string, at::Tensor>;

/// Copies `tensors`, saved from the same model on the grid `saved_grid`, into `model`: rows per
/// offset and per place are moved to the model's own grid, everything else must fit as it is.
/// Missing, unknown or ill-fitting tensors stop it, before anything is changed. Returns what was
/// moved, one note per tensor; nothing where the grids are equal.
TRANSLUTION_API std::vector<RegridNote> load_tensors(torch::nn::Module& model,
                                                     const NamedTensors& tensors,
                                                     const std::vector<int64_t>& saved_grid,
                                                     Fill fill = Fill::nearest);

}  // namespace translution
