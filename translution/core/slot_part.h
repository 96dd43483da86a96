#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/offsets.h"

namespace translution {

/// One of `count` parts of the slots of an offset table. The default is all slots.
struct SlotPart {
  int64_t index = 0, count = 1;
};

/// What one process of an offset-parallel group has of a layer or model: the rows of a part of the
/// slots, and the name of the group (ops/group.h) that sums what the parts give.
struct SlotShare {
  SlotPart part;
  std::string group = {};
};

/// The rows of a whole table that a process has, in the order in which it stores them.
struct TableRows {
  int64_t all = 0;  ///< rows of the whole table
  std::vector<int64_t> rows;
};

/// The slots of a part, in ascending order: the rows of its query, value and kernel tables. The
/// rows of its key tables are their mirrors.
///
/// The slots are sorted by their number of pairs and dealt to the parts in turn, in one direction
/// and then in the other. So the parts have nearly the same number of pairs, and their numbers of
/// slots differ by at most one. Every slot is in one part. Throws if there are more parts than
/// slots, or if slots share a key slot.
TRANSLUTION_API std::vector<int64_t> slots_of(const OffsetTable& table, SlotPart part);

/// The number of slots_of a table with that many slots.
TRANSLUTION_API int64_t count_slots(int64_t slots, SlotPart part);

/// " part=1/4", the end of the text of its pairs (core/pairs.h); empty for all slots.
TRANSLUTION_API std::string part_text(SlotPart part);

}  // namespace translution
