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

// A table stores all pairs: 34 GB for this many tokens. A larger grid is most likely a typo.
constexpr int64_t kMaxTokens = 65535;

int64_t sign(int64_t x) { return (x > 0) - (x < 0); }

// Distances r+1 to 2r+1 are bucket r+1; each further bucket is twice as wide.
int64_t log_bucket(int64_t distance, int64_t radius) {
  int64_t bucket = radius + 1;
  for (int64_t reach = 2 * (radius + 1); distance >= reach; reach *= 2) ++bucket;
  return bucket;
}

// The offset itself, or the bucket that it shares; nothing if the pair is omitted.
std::optional<Offset> bucket_of(const Offset& offset, const OffsetOptions& options) {
  const int64_t radius = options.radius;
  const auto is_far = [radius](int64_t d) { return std::abs(d) > radius; };
  if (options.sharing == Sharing::none || std::none_of(offset.begin(), offset.end(), is_far))
    return offset;
  if (options.sharing == Sharing::window) return std::nullopt;
  Offset bucket = offset;
  for (int64_t& d : bucket) {
    if (is_far(d))
      d = sign(d) *
          (options.sharing == Sharing::direction ? radius + 1 : log_bucket(std::abs(d), radius));
    else if (options.sharing == Sharing::direction)
      d = 0;
  }
  return bucket;
}

// Advances `index` within the box [low, high] in row-major order; false after the last.
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

// Maps each bucket of the grid to its slot.
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
    require(side > 0, "offsets: expected a grid with sides of 1 or more, got ",
            times(options.grid));
    require(side <= kMaxTokens && tokens <= kMaxTokens / side, "offsets: expected at most ",
            kMaxTokens, " tokens, got a grid of ", times(options.grid));
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
    int64_t pairs_of_offset = 1;
    for (size_t axis = 0; axis < offset.size(); ++axis)
      pairs_of_offset *= options.grid[axis] - std::abs(offset[axis]);
    pairs += pairs_of_offset;
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
          "offsets: expected sharing none, since encoding absolute has one slot per token pair");
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
  // The linear indices of two tokens in a grid with sides 2*side - 1 differ by a number that is
  // unique to their offset, so one subtraction finds the slot. A map lookup per pair took seconds
  // for a thousand tokens.
  const int64_t axes = static_cast<int64_t>(options_.grid.size());
  std::vector<int64_t> stride(axes, 1);
  for (int64_t axis = axes - 1; axis > 0; --axis)
    stride[axis - 1] = stride[axis] * (2 * options_.grid[axis] - 1);
  const auto linear_index = [&](const Offset& position) {
    return std::inner_product(position.begin(), position.end(), stride.begin(), int64_t{0});
  };
  const auto positions = grid_positions(options_.grid);
  const int64_t centre = linear_index(positions.back());
  std::vector<int64_t> slot_at(2 * centre + 1, -1);
  for_each_offset(options_, [&](const Offset& offset) {
    if (const auto bucket = bucket_of(offset, options_))
      slot_at[centre + linear_index(offset)] = slot_of.at(*bucket);
  });
  const int64_t first = options_.cls ? 1 : 0;
  std::vector<int64_t> indices;
  for (const Offset& position : positions) indices.push_back(linear_index(position));
  for (int64_t i = first; i < num_tokens_; ++i)
    for (int64_t j = first; j < (options_.causal ? i + 1 : num_tokens_); ++j)
      slots_[i * num_tokens_ + j] = slot_at[centre + indices[i - first] - indices[j - first]];
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
  require(static_cast<int64_t>(slots.size()) == num_tokens * num_tokens, "relation: expected ",
          num_tokens * num_tokens, " entries for ", num_tokens, " tokens, got ", slots.size());
  require(num_slots > 0, "relation: expected 1 or more slots, got ", num_slots);
  for (size_t p = 0; p < slots.size(); ++p)
    require(slots[p] >= -1 && slots[p] < num_slots, "relation: expected -1 for no pair or 0 to ",
            num_slots - 1, ", got ", slots[p], " for pair (", p / num_tokens, ", ", p % num_tokens,
            ")");
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
        require(mirror[slot] < 0 || mirror[slot] == key, "relation: slot ", slot, " has key slot ",
                mirror[slot], " for one pair and ", key, " for pair (", i, ", ", j,
                "); pass the key slot of each slot as `mirror`");
        mirror[slot] = key;
      }
    }
    for (int64_t s = 0; s < num_slots; ++s)
      if (mirror[s] < 0) mirror[s] = s;
  }
  require(static_cast<int64_t>(mirror.size()) == num_slots, "relation: expected a mirror of ",
          num_slots, " entries, one per slot, got ", mirror.size());
  for (const int64_t key : mirror)
    require(key >= 0 && key < num_slots, "relation: expected mirror entries from 0 to ",
            num_slots - 1, ", got ", key);
  table.mirror_ = std::move(mirror);
  table.spans_ = find_spans(table.slots_, table.mirror_);
  return table;
}

std::vector<PairSpan> find_spans(const std::vector<int64_t>& slots,
                                 const std::vector<int64_t>& mirror) {
  const auto N = std::llround(std::sqrt(static_cast<double>(slots.size())));
  std::vector<char> covered(N * N, 0);
  const auto uncovered_length = [&](int64_t i, int64_t j, int64_t di, int64_t dj) {
    const int64_t slot = slots[i * N + j];
    int64_t length = 0;
    for (; i < N && j < N && slots[i * N + j] == slot && !covered[i * N + j]; i += di, j += dj)
      ++length;
    return length;
  };
  std::vector<PairSpan> spans;
  for (int64_t i = 0; i < N; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      const int64_t slot = slots[i * N + j];
      if (slot < 0 || covered[i * N + j]) continue;
      PairSpan span{slot, mirror[slot], i, j, uncovered_length(i, j, 1, 1), 1, 1};
      for (const auto& [di, dj] : {std::pair{0, 1}, std::pair{1, 0}}) {
        const int64_t length = uncovered_length(i, j, di, dj);
        if (length > span.length) span.length = length, span.di = di, span.dj = dj;
      }
      for (int64_t t = 0; t < span.length; ++t)
        covered[(i + t * span.di) * N + j + t * span.dj] = 1;
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
  std::map<int64_t, std::vector<int64_t>> queries_of;  // a token may be listed more than once
  for (size_t query = 0; query < rows.size(); ++query)
    queries_of[rows[query]].push_back(static_cast<int64_t>(query));
  std::vector<PairSpan> selected;
  for (const PairSpan& span : spans) {
    if (span.di == 0) {
      const auto found = queries_of.find(span.i);
      if (found == queries_of.end()) continue;
      for (const int64_t query : found->second) {
        selected.push_back(span);
        selected.back().i = query;
      }
      continue;
    }
    const size_t first_of_span = selected.size();
    for (int64_t t = 0; t < span.length; ++t) {
      const auto found = queries_of.find(span.i + t);
      if (found == queries_of.end()) continue;
      for (const int64_t query : found->second) {
        const int64_t j = span.j + t * span.dj;
        const bool extends = selected.size() > first_of_span &&
                             selected.back().i + selected.back().length == query &&
                             selected.back().j + selected.back().length * span.dj == j;
        if (extends)
          ++selected.back().length;
        else
          selected.push_back({span.slot, span.key_slot, query, j, 1, 1, span.dj});
      }
    }
  }
  return selected;
}

}  // namespace translution
