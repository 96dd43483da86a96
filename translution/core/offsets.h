#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// Pairs (i + t*di, j + t*dj), t < length, that share one weight row. Grid offsets give spans with
/// di = dj = 1: consecutive queries meet consecutive keys, so in token-major features one span is
/// one matrix product. A class token gives fans: one side stands still (di = 0 or dj = 0).
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

/// One weight row per offset, or one per token pair.
enum class Encoding { relative, absolute };

/// How offsets beyond `radius` (in any axis) are told apart.
enum class Sharing {
  none,         ///< every offset has a slot of its own
  direction,    ///< one slot per direction: an axis counts as 0 while it is within the radius
  logarithmic,  ///< per axis: r+1 to 2r+1, then buckets that each double the reach
  window,       ///< not at all: such pairs are left out, as in a convolution
};

struct OffsetOptions {
  std::vector<int64_t> grid;  ///< sides, e.g. {160}, {7, 7}, {4, 7, 7}
  bool cls = false;           ///< a class token in front, with slots of its own
  bool causal = false;        ///< i gathers only from j <= i (row-major order)
  Encoding encoding = Encoding::relative;
  Sharing sharing = Sharing::none;
  int64_t radius = 0;  ///< used by every sharing but `none`
};

/// Maps a token pair (i, j), "i gathers from j", to a weight row, the slot.
///
/// Relative slots are ordered by offset delta = p_i - p_j, first axis slowest, from the most
/// negative to the most positive; a causal table has only the offsets that occur. With a class
/// token three slots follow: itself, in (it gathers from a grid token), out (a grid token gathers
/// from it). The key of a pair is taken at -delta, so `key_slot` is the slot of the mirrored
/// offset; where that offset does not exist (causal, class token) it is `slot` itself.
/// Absolute slots number the pairs row by row, only j <= i if causal; the key slot of (i, j) is
/// that of (j, i), or its own if causal.
class TRANSLUTION_API OffsetTable {
 public:
  explicit OffsetTable(const OffsetOptions& options);

  /// Any relation: `slots` is N x N row-major, an entry in [0, num_slots) or -1 for "no pair".
  /// `mirror[s]` is the key slot of slot s. When it is empty, the key slot of (i, j) is the
  /// relation of (j, i), or the pair's own slot where (j, i) is no pair; a relation for which that
  /// is not the same for all pairs of a slot is refused.
  static OffsetTable from_relation(const std::vector<int64_t>& slots, int64_t num_tokens,
                                   int64_t num_slots, std::vector<int64_t> mirror = {});

  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_slots() const { return static_cast<int64_t>(mirror_.size()); }
  /// Pairs that are not left out.
  int64_t num_pairs() const;

  /// Slot of the pair, -1 where i does not gather from j.
  int64_t slot(int64_t i, int64_t j) const { return slots_[i * num_tokens_ + j]; }
  int64_t key_slot(int64_t i, int64_t j) const {
    const int64_t s = slot(i, j);
    return s < 0 ? -1 : mirror_[s];
  }
  const std::vector<int64_t>& mirror() const { return mirror_; }

  /// Each pair exactly once, sorted by slot; within a slot, long spans as they occur in the grid.
  const std::vector<PairSpan>& spans() const { return spans_; }

  /// The offset a relative slot stands for (its bucket under sharing); nothing for the class
  /// token's slots, absolute tables and relations.
  std::optional<std::vector<int64_t>> offset(int64_t slot) const;
  /// "(-1,+2)", "cls", "cls in", "cls out", or "slot 7".
  std::string slot_name(int64_t slot) const;

  /// What the table was made from; `grid` is empty for a relation.
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

/// How many slots `OffsetTable(options)` has, without building it: also for grids whose pairs
/// would fill memory.
TRANSLUTION_API int64_t count_slots(const OffsetOptions& options);
/// Tokens of the grid and the class token. Refuses a grid that makes no sense.
TRANSLUTION_API int64_t count_tokens(const OffsetOptions& options);
/// Pairs (i, j) that such a table covers.
TRANSLUTION_API int64_t count_pairs(const OffsetOptions& options);

/// The spans of a square matrix of slots, row by row; -1 for no pair. `mirror` has the key slots.
TRANSLUTION_API std::vector<PairSpan> find_spans(const std::vector<int64_t>& slots,
                                                 const std::vector<int64_t>& mirror);
/// The spans of the given query rows; in the result `i` is the place in `rows`.
TRANSLUTION_API std::vector<PairSpan> select_rows(const std::vector<PairSpan>& spans,
                                                  const std::vector<int64_t>& rows);

}  // namespace translution
