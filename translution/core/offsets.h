#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// Pairs (i + t*di, j + t*dj), t < length, that share one slot. Grid offsets give spans with
/// di = dj = 1: consecutive queries are paired with consecutive keys, so one span of token-major
/// features is one matrix product. A class token gives fans, where one side is fixed (di = 0 or
/// dj = 0).
struct PairSpan {
  int64_t slot;      ///< row of the query and value tables
  int64_t key_slot;  ///< row of the key table
  int64_t i, j;      ///< first pair: i gathers from j
  int64_t length;
  int64_t di, dj;  ///< (1,1), (0,1) or (1,0)

  bool operator==(const PairSpan& o) const {
    return slot == o.slot && key_slot == o.key_slot && i == o.i && j == o.j && length == o.length &&
           di == o.di && dj == o.dj;
  }
};

/// One slot per offset, or one per token pair.
enum class Encoding { relative, absolute };

/// How offsets beyond `radius` (in any axis) are mapped to slots.
enum class Sharing {
  none,         ///< one slot per offset
  direction,    ///< one slot per direction; an axis within the radius counts as 0
  logarithmic,  ///< buckets per axis: r+1 to 2r+1, then each twice as wide as the last
  window,       ///< no slot: such pairs are omitted, as in a convolution
};

struct OffsetOptions {
  std::vector<int64_t> grid;  ///< sides, e.g. {160}, {7, 7}, {4, 7, 7}
  bool cls = false;           ///< a class token precedes the grid and has its own slots
  bool causal = false;        ///< i gathers only from j <= i (row-major order)
  Encoding encoding = Encoding::relative;
  Sharing sharing = Sharing::none;
  int64_t radius = 0;  ///< ignored if sharing is `none`
};

/// Maps a token pair (i, j), "i gathers from j", to a row of a weight table, its slot.
///
/// Relative slots are ordered by offset delta = p_i - p_j, first axis slowest, from the most
/// negative to the most positive; a causal table has only the offsets that occur. A class token
/// adds three slots at the end: itself, in (it gathers from a grid token), out (a grid token
/// gathers from it). The key of a pair uses offset -delta, so `key_slot` is the slot of the
/// mirrored offset, or `slot` itself if that offset does not exist (causal, class token). Absolute
/// slots number the pairs row by row, only j <= i if causal; the key slot of (i, j) is that of (j,
/// i), or its own if causal.
class TRANSLUTION_API OffsetTable {
 public:
  explicit OffsetTable(const OffsetOptions& options);

  /// A table from any relation: `slots` is N x N row-major, with entries in [0, num_slots), or -1
  /// for no pair. `mirror[s]` is the key slot of slot s. If `mirror` is empty, the key slot of (i,
  /// j) is the slot of (j, i), or the pair's own slot if (j, i) is no pair. Throws if that differs
  /// between pairs of one slot.
  static OffsetTable from_relation(const std::vector<int64_t>& slots, int64_t num_tokens,
                                   int64_t num_slots, std::vector<int64_t> mirror = {});

  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_slots() const { return static_cast<int64_t>(mirror_.size()); }
  /// Pairs that have a slot.
  int64_t num_pairs() const;

  /// Slot of the pair; -1 if i does not gather from j.
  int64_t slot(int64_t i, int64_t j) const { return slots_[i * num_tokens_ + j]; }
  int64_t key_slot(int64_t i, int64_t j) const {
    const int64_t s = slot(i, j);
    return s < 0 ? -1 : mirror_[s];
  }
  const std::vector<int64_t>& mirror() const { return mirror_; }

  /// Each pair exactly once, sorted by slot; within a slot, in row-major order of the first pair.
  const std::vector<PairSpan>& spans() const { return spans_; }

  /// The offset of a relative slot, or its bucket if offsets are shared. Empty for the class
  /// token's slots, absolute tables and relations.
  std::optional<std::vector<int64_t>> offset(int64_t slot) const;
  /// "(-1,+2)", "cls", "cls in", "cls out", or "slot 7".
  std::string slot_name(int64_t slot) const;

  /// The options that the table was built from; `grid` is empty for a relation.
  const OffsetOptions& options() const { return options_; }

 private:
  OffsetTable() = default;
  void build_relative();
  void build_absolute();

  OffsetOptions options_;
  int64_t num_tokens_ = 0;
  std::vector<int64_t> slots_;
  std::vector<int64_t> mirror_;
  std::vector<std::vector<int64_t>> offsets_;  // of the grid slots, in slot order
  std::vector<PairSpan> spans_;
};

/// Number of slots of `OffsetTable(options)`. Does not build the table, so it also works for grids
/// whose pairs do not fit into memory.
TRANSLUTION_API int64_t count_slots(const OffsetOptions& options);
/// Number of tokens of the grid, with the class token. Throws if the grid is invalid.
TRANSLUTION_API int64_t count_tokens(const OffsetOptions& options);
/// Number of pairs (i, j) that have a slot in `OffsetTable(options)`.
TRANSLUTION_API int64_t count_pairs(const OffsetOptions& options);

/// The spans of a square row-major matrix of slots; -1 for no pair. `mirror` has the key slots.
TRANSLUTION_API std::vector<PairSpan> find_spans(const std::vector<int64_t>& slots,
                                                 const std::vector<int64_t>& mirror);
/// The spans of the given query rows; in the result, `i` is an index into `rows`.
TRANSLUTION_API std::vector<PairSpan> select_rows(const std::vector<PairSpan>& spans,
                                                  const std::vector<int64_t>& rows);

}  // namespace translution
