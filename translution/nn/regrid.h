#pragma once

#include <torch/nn/module.h>

#include <map>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"
#include "translution/core/offsets.h"

namespace translution {

/// How the row of an offset or position that is not in the old grid is filled.
enum class Fill {
  nearest,  ///< from the nearest old offset or position
  bicubic,  ///< by bicubic interpolation of the old rows over the new grid (1 or 2 dimensions)
};

inline constexpr Named<Fill> kFills[] = {
    {Fill::nearest, "nearest", "from the nearest old row"},
    {Fill::bicubic, "bicubic", "by bicubic interpolation of the old rows"},
};

/// The changes to one tensor: how many rows were copied (`kept`), and how many were filled.
struct TRANSLUTION_API RegridNote {
  std::string name;
  int64_t old_rows, new_rows, kept, filled;
  /// "blocks.0.attention.query: 172 -> 292 rows, 172 kept, 120 filled from the nearest"
  std::string str(Fill fill) const;
};

/// Moves the rows of a table [M,…] from one offset table to another. Rows of offsets that are in
/// both, and the class token's rows, are copied. Rows of new offsets are filled. Rows of offsets
/// that the new grid lacks are dropped. The offset tables must be relative, not absolute, and may
/// differ only in the sides of their grids.
TRANSLUTION_API at::Tensor regrid_offsets(const at::Tensor& table, const OffsetTable& from,
                                          const OffsetTable& to, Fill fill,
                                          RegridNote* note = nullptr);

/// The same for rows per position [N,…], such as an input position embedding.
TRANSLUTION_API at::Tensor regrid_places(const at::Tensor& rows, const OffsetOptions& from,
                                         const OffsetOptions& to, Fill fill,
                                         RegridNote* note = nullptr);

/// Tensors by the names of `named_parameters()`.
using NamedTensors = std::map<std::string, at::Tensor>;

/// Copies `tensors`, saved from the same model on the grid `saved_grid`, into `model`. Rows per
/// offset and per position are moved to the model's own grid; every other tensor must have the
/// model's shape. Throws on missing, unknown or ill-fitting tensors before anything is changed.
/// Returns one note per moved tensor; none if the grids are equal. A model of points has no grid:
/// `saved_grid` is empty. A layer with a part of the slots takes its rows of whole tables.
TRANSLUTION_API std::vector<RegridNote> load_tensors(torch::nn::Module& model,
                                                     const NamedTensors& tensors,
                                                     const std::vector<int64_t>& saved_grid,
                                                     Fill fill = Fill::nearest);

}  // namespace translution
