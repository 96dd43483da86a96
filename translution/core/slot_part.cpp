#include "translution/core/slot_part.h"

#include <algorithm>
#include <numeric>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

void check_part(int64_t slots, SlotPart part) {
  require(part.index >= 0 && part.index < part.count,
          "pairs: expected part=R/P with R from 0 to P - 1, got part=", part.index, "/",
          part.count);
  require(part.count <= slots, "pairs: expected at most ", slots, " parts, one slot each, got ",
          part.count, "; use fewer processes for the slots");
}

// The part of the slot at that place of the order: 0, 1, 2, 2, 1, 0, 0, 1, …
int64_t part_at(int64_t place, int64_t parts) {
  const int64_t step = place % parts;
  return place / parts % 2 == 0 ? step : parts - 1 - step;
}

// Each key row belongs to one slot, so the part that has the slot has its complete gradient.
void check_mirror(const OffsetTable& table) {
  std::vector<char> seen(table.num_slots(), 0);
  for (const int64_t key : table.mirror()) {
    require(!seen[key], "pairs: expected slots with a key slot each to split them into parts, got ",
            "several slots with key slot ", key);
    seen[key] = 1;
  }
}

}  // namespace

std::vector<int64_t> slots_of(const OffsetTable& table, SlotPart part) {
  const int64_t count = table.num_slots();
  check_part(count, part);
  check_mirror(table);
  std::vector<int64_t> pairs(count, 0), order(count), slots;
  for (const PairSpan& span : table.spans()) pairs[span.slot] += span.length;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return pairs[a] > pairs[b]; });
  for (int64_t place = 0; place < count; ++place)
    if (part_at(place, part.count) == part.index) slots.push_back(order[place]);
  std::sort(slots.begin(), slots.end());
  return slots;
}

int64_t count_slots(int64_t slots, SlotPart part) {
  check_part(slots, part);
  int64_t count = slots / part.count;
  for (int64_t place = count * part.count; place < slots; ++place)
    if (part_at(place, part.count) == part.index) ++count;
  return count;
}

std::string part_text(SlotPart part) {
  return part.count == 1 ? "" : join(" part=", part.index, "/", part.count);
}

}  // namespace translution
