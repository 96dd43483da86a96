#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// What an IDX file of bytes holds.
struct IdxArray {
  std::vector<int64_t> sizes;   ///< 1 to 4 of them, each at least 1
  std::vector<uint8_t> values;  ///< row-major
};

/// Reads IDX, plain or gzip, as `bytes` begin. Refuses another type than bytes, sizes whose product
/// overflows or is not what the file holds, and gzip that is damaged, goes on behind its end, or
/// announces far more than images can shrink. `name` begins the messages.
TRANSLUTION_API IdxArray parse_idx(std::string_view bytes, const std::string& name);

}  // namespace translution
