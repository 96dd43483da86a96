#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// The contents of an IDX file of unsigned bytes.
struct IdxArray {
  std::vector<int64_t> sizes;   ///< 1 to 4 dimensions, each at least 1
  std::vector<uint8_t> values;  ///< row-major
};

/// Parses IDX, plain or gzip; the first bytes decide which. Throws std::runtime_error if the
/// element type is not unsigned byte, if the product of the sizes overflows or differs from the
/// number of values, and if gzip data is damaged, has trailing bytes, or declares far more values
/// than compressed images can hold. Messages begin with `name`.
TRANSLUTION_API IdxArray parse_idx(std::string_view bytes, const std::string& name);

}  // namespace translution
