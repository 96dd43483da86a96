#include "translution/core/offsets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using Offset = std::vector<int64_t>;

// All pairs are held, so that this many tokens mean 34 GB: beyond it a grid is a typing error.
constexpr int64_t kMaxTokens = 65535;

int64_t sign(int64_t x) { return (x > 0) - (x < 0); }

// Doubling buckets: r+1 .. 2r+1 is bucket r+1, the next twice as many bucket r+2, and so on.
int64_t log_bucket(int64_t distance, int64_t radius) {
  int64_t bucket = radius + 1;
  for (int64_t reach = 2 * (radius + 1); distance >= reach; reach *= 2) ++bucket;
  return bucket;
}

// The offset itself, or what it is shared with; nothing if the pair is left out.
std::optional<Offset> bucket_of(const Offset& offset, const OffsetOptions& options) {
  const int64_t radius = options.radius;
  const auto far = [radius](int64_t d) { return std::abs(d) > radius; };
  if (options.sharing == Sharing::none || std::none_of(offset.begin(), offset.end(), far))
    return offset;
  if (options.sharing == Sharing::window) return std::nullopt;
  Offset bucket = offset;
  for (int64_t& d : bucket) {
    if (far(d))
      d = sign(d) *
          (options.sharing == Sharing::direction ? radius + 1 : log_bucket(std::abs(d), radius));
    else if (options.sharing == Sharing::direction)
      d = 0;
  }
  return bucket;
}

// The row-major neighbour of `index` in the box [low, high]; false after the last.
bool next_index(Offset& index, const Offset& low, const Offset& high) {
  for (size_t axis = index.size(); axis-- > 0;) {
    if (++index[axis] <= high[axis]) return true;
    index[axis] = low[axis];
  }
  return false;
}

// Calls visit(offset) for every offset that occurs between two grid tokens.
template <typename Visit>
void for_each_offset(const OffsetOptions& options, Visit visit) {
  Offset low, high;
  for (const int64_t side : options.grid) {
    low.push_back(1 - side);
    high.push_back(side - 1);
  }
  const Offset zero(low.size(), 0);
  Offset offset = options.causal ? zero : low;  // row-major order: causal means offset >= 0
  do visit(offset);
  while (next_index(offset, low, high));
}

// Buckets of the grid in slot order.
std::map<Offset, int64_t> number_buckets(const OffsetOptions& options) {
  std::map<Offset, int64_t> slot_of;
  for_each_offset(options, [&](const Offset& offset) {
    if (const auto bucket = bucket_of(offset, options)) slot_of.emplace(*bucket, 0);
  });
  int64_t slot = 0;
  for (auto& entry : slot_of) entry.second = slot++;
  return slot_of;
}

std::vector<Offset> grid_positions(const std::vector<int64_t>& grid) {
  const Offset low(grid.size(), 0);
  Offset high;
  for (const int64_t side : grid) high.push_back(side - 1);
  std::vector<Offset> positions;
  Offset position = low;
  do positions.push_back(position);
  while (next_index(position, low, high));
  return positions;
}

}  // namespace

int64_t count_tokens(const OffsetOptions& options) {
  require(!options.grid.empty(), "offsets: expected a grid of one or more sides, got none");
  require(options.radius >= 0, "offsets: expected a radius of 0 or more, got ", options.radius);
  int64_t tokens = 1;
  for (const int64_t side : options.grid) {
    require(side > 0, "offsets: every side of a grid must be 1 or more, got ", times(options.grid));
    require(side <= kMaxTokens && tokens <= kMaxTokens / side, "offsets: the grid ",
            times(options.grid), " has more than ", kMaxTokens,
            " tokens, the most that a table of all pairs can hold");
    tokens *= side;
  }
  return tokens + (options.cls ? 1 : 0);
}

int64_t count_pairs(const OffsetOptions& options) {
  const int64_t tokens = count_tokens(options);
  if (options.sharing != Sharing::window)
    return options.causal ? tokens * (tokens + 1) / 2 : tokens * tokens;
  int64_t pairs = 0;
  for_each_offset(options, [&](const Offset& offset) {
    if (!bucket_of(offset, options)) return;
    int64_t places = 1;
    for (size_t axis = 0; axis < offset.size(); ++axis)
      places *= options.grid[axis] - std::abs(offset[axis]);
    pairs += places;
  });
  if (options.cls) pairs += options.causal ? tokens : 2 * tokens - 1;
  return pairs;
}

int64_t count_slots(const OffsetOptions& options) {
  const int64_t tokens = count_tokens(options);
  if (options.encoding == Encoding::absolute)
    return options.causal ? tokens * (tokens + 1) / 2 : tokens * tokens;
  return static_cast<int64_t>(number_buckets(options).size()) + (options.cls ? 3 : 0);
}

OffsetTable::OffsetTable(const OffsetOptions& options)
    : options_(options), num_tokens_(count_tokens(options)) {
  require(options.encoding == Encoding::relative || options.sharing == Sharing::none,
          "offsets: an absolute table has one slot per token pair and shares none; "
          "leave sharing at none");
  slots_.assign(num_tokens_ * num_tokens_, -1);
  if (options.encoding == Encoding::absolute)
    build_absolute();
  else
    build_relative();
  spans_ = find_spans(slots_, mirror_);
}

void OffsetTable::build_relative() {
  const auto slot_of = number_buckets(options_);
  const int64_t grid_slots = static_cast<int64_t>(slot_of.size());
  for (const auto& [bucket, slot] : slot_of) {
    Offset mirrored = bucket;
    for (int64_t& d : mirrored) d = -d;
    const auto found = slot_of.find(mirrored);
    mirror_.push_back(options_.causal || found == slot_of.end() ? slot : found->second);
    offsets_.push_back(bucket);
  }
  // The offset of two tokens is a difference of their places in a grid with sides 2*side - 1, so
  // one subtraction finds the slot; a map look-up per pair took seconds for a thousand tokens.
  const int64_t axes = static_cast<int64_t>(options_.grid.size());
  std::vector<int64_t> stride(axes, 1);
  for (int64_t axis = axes - 1; axis > 0; --axis)
    stride[axis - 1] = stride[axis] * (2 * options_.grid[axis] - 1);
  const auto place = [&](const Offset& position) {
    return std::inner_product(position.begin(), position.end(), stride.begin(), int64_t{0});
  };
  const auto positions = grid_positions(options_.grid);
  const int64_t centre = place(positions.back());
  std::vector<int64_t> slot_at(2 * centre + 1, -1);
  for_each_offset(options_, [&](const Offset& offset) {
    if (const auto bucket = bucket_of(offset, options_))
      slot_at[centre + place(offset)] = slot_of.at(*bucket);
  });
  const int64_t first = options_.cls ? 1 : 0;
  std::vector<int64_t> places;
  for (const Offset& position : positions) places.push_back(place(position));
  for (int64_t i = first; i < num_tokens_; ++i)
    for (int64_t j = first; j < (options_.causal ? i + 1 : num_tokens_); ++j)
      slots_[i * num_tokens_ + j] = slot_at[centre + places[i - first] - places[j - first]];
  if (!options_.cls) return;
  const int64_t itself = grid_slots, in = grid_slots + 1, out = grid_slots + 2;
  slots_[0] = itself;
  for (int64_t t = 1; t < num_tokens_; ++t) {
    if (!options_.causal) slots_[t] = in;
    slots_[t * num_tokens_] = out;
  }
  mirror_.insert(mirror_.end(), {itself, in, out});
}

void OffsetTable::build_absolute() {
  for (int64_t i = 0; i < num_tokens_; ++i) {
    for (int64_t j = 0; j < (options_.causal ? i + 1 : num_tokens_); ++j) {
      slots_[i * num_tokens_ + j] = static_cast<int64_t>(mirror_.size());
      mirror_.push_back(options_.causal ? static_cast<int64_t>(mirror_.size())
                                        : j * num_tokens_ + i);
    }
  }
}

OffsetTable OffsetTable::from_relation(const std::vector<int64_t>& slots, int64_t num_tokens,
                                       int64_t num_slots, std::vector<int64_t> mirror) {
  require(num_tokens > 0 && num_tokens <= kMaxTokens, "relation: expected 1 to ", kMaxTokens,
          " tokens, got ", num_tokens);
  require(static_cast<int64_t>(slots.size()) == num_tokens * num_tokens, "relation: ", num_tokens,
          " tokens need ", num_tokens * num_tokens, " entries, got ", slots.size());
  require(num_slots > 0, "relation: expected 1 or more slots, got ", num_slots);
  for (size_t p = 0; p < slots.size(); ++p)
    require(slots[p] >= -1 && slots[p] < num_slots, "relation: the entry of pair (", p / num_tokens,
            ", ", p % num_tokens, ") is ", slots[p], ", expected -1 for no pair or 0 to ",
            num_slots - 1);
  OffsetTable table;
  table.num_tokens_ = num_tokens;
  table.slots_ = slots;
  if (mirror.empty()) {
    mirror.assign(num_slots, -1);
    for (int64_t i = 0; i < num_tokens; ++i) {
      for (int64_t j = 0; j < num_tokens; ++j) {
        const int64_t slot = table.slot(i, j);
        if (slot < 0) continue;
        const int64_t key = table.slot(j, i) < 0 ? slot : table.slot(j, i);
        require(mirror[slot] < 0 || mirror[slot] == key, "relation: the reverse of relation ", slot,
                " is ", mirror[slot], " for one pair and ", key, " for pair (", i, ", ", j,
                "); hand in the key slot of each relation as `mirror`");
        mirror[slot] = key;
      }
    }
    for (int64_t s = 0; s < num_slots; ++s)
      if (mirror[s] < 0) mirror[s] = s;
  }
  require(static_cast<int64_t>(mirror.size()) == num_slots, "relation: mirror needs one entry for ",
          "each of the ", num_slots, " slots, got ", mirror.size());
  for (const int64_t key : mirror)
    require(key >= 0 && key < num_slots, "relation: a mirror entry is ", key, ", expected 0 to ",
            num_slots - 1);
  table.mirror_ = std::move(mirror);
  table.spans_ = find_spans(table.slots_, table.mirror_);
  return table;
}

std::vector<PairSpan> find_spans(const std::vector<int64_t>& slots,
                                 const std::vector<int64_t>& mirror) {
  const auto N = std::llround(std::sqrt(static_cast<double>(slots.size())));
  std::vector<char> taken(N * N, 0);
  const auto free_length = [&](int64_t i, int64_t j, int64_t di, int64_t dj) {
    const int64_t slot = slots[i * N + j];
    int64_t length = 0;
    for (; i < N && j < N && slots[i * N + j] == slot && !taken[i * N + j]; i += di, j += dj)
      ++length;
    return length;
  };
  std::vector<PairSpan> spans;
  for (int64_t i = 0; i < N; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      const int64_t slot = slots[i * N + j];
      if (slot < 0 || taken[i * N + j]) continue;
      PairSpan span{slot, mirror[slot], i, j, free_length(i, j, 1, 1), 1, 1};
      for (const auto& [di, dj] : {std::pair{0, 1}, std::pair{1, 0}}) {
        const int64_t length = free_length(i, j, di, dj);
        if (length > span.length) span.length = length, span.di = di, span.dj = dj;
      }
      for (int64_t t = 0; t < span.length; ++t) taken[(i + t * span.di) * N + j + t * span.dj] = 1;
      spans.push_back(span);
    }
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const PairSpan& a, const PairSpan& b) { return a.slot < b.slot; });
  return spans;
}

int64_t OffsetTable::num_pairs() const {
  return std::accumulate(spans_.begin(), spans_.end(), int64_t{0},
                         [](int64_t sum, const PairSpan& span) { return sum + span.length; });
}

std::optional<std::vector<int64_t>> OffsetTable::offset(int64_t slot) const {
  require(slot >= 0 && slot < num_slots(), "offsets: expected a slot from 0 to ", num_slots() - 1,
          ", got ", slot);
  if (slot >= static_cast<int64_t>(offsets_.size())) return std::nullopt;
  return offsets_[slot];
}

std::string OffsetTable::slot_name(int64_t slot) const {
  const auto delta = offset(slot);
  if (delta) {
    std::string name = "(";
    for (const int64_t d : *delta) name += join(name.size() > 1 ? "," : "", d > 0 ? "+" : "", d);
    return name + ")";
  }
  if (options_.cls && options_.encoding == Encoding::relative) {
    static const char* const names[] = {"cls", "cls in", "cls out"};
    return names[slot - static_cast<int64_t>(offsets_.size())];
  }
  return join("slot ", slot);
}

std::vector<PairSpan> select_rows(const std::vector<PairSpan>& spans,
                                  const std::vector<int64_t>& rows) {
  std::map<int64_t, std::vector<int64_t>> places;  // a token may be asked for more than once
  for (size_t place = 0; place < rows.size(); ++place)
    places[rows[place]].push_back(static_cast<int64_t>(place));
  std::vector<PairSpan> selected;
  for (const PairSpan& span : spans) {
    if (span.di == 0) {
      const auto found = places.find(span.i);
      if (found == places.end()) continue;
      for (const int64_t place : found->second) {
        selected.push_back(span);
        selected.back().i = place;
      }
      continue;
    }
    const size_t first_of_run = selected.size();
    for (int64_t t = 0; t < span.length; ++t) {
      const auto found = places.find(span.i + t);
      if (found == places.end()) continue;
      for (const int64_t place : found->second) {
        const int64_t j = span.j + t * span.dj;
        const bool extends = selected.size() > first_of_run &&
                             selected.back().i + selected.back().length == place &&
                             selected.back().j + selected.back().length * span.dj == j;
        if (extends)
          ++selected.back().length;
        else
          selected.push_back({span.slot, span.key_slot, place, j, 1, 1, span.dj});
      }
    }
  }
  return selected;
}

}  // namespace translution
