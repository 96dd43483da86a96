#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <typeindex>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/offsets.h"
#include "translution/core/recent.h"

namespace translution {

/// Names a `Pairs` by plain values, so that it is a constant of a traced graph.
///
/// The text says how tokens relate:
///   ""          every token meets every token, for any number of them; no weight rows
///   "causal"    the same, with j <= i only
///   "7x7 cls"   the offsets of a grid; any of these words may follow the sides: cls, causal,
///               absolute, direction=R, logarithmic=R, window=R with a radius R
///   "relation mirror=0,2,1 slots=0,1*3,-1,…"   a relation of the caller's own, pair by pair, n*k
///               for n in k pairs; "causal" behind it leaves out j > i
struct PairsName {
  std::string text = {};
  std::vector<int64_t> grid = {};  ///< a smaller one than the text's; empty: its own
  std::vector<int64_t> rows = {};  ///< the tokens that are queries; empty: all
  int64_t tokens = 0;              ///< 0: as many as the text and the grid say

  bool operator<(const PairsName& o) const {
    return std::tie(tokens, rows, grid, text) < std::tie(o.tokens, o.rows, o.grid, o.text);
  }
};

/// The text of a grid's offsets, and of any table. `causal` leaves out j > i where the table does
/// not.
TRANSLUTION_API std::string pairs_text(const OffsetOptions& options);
TRANSLUTION_API std::string pairs_text(const OffsetTable& table, bool causal = false);

/// Which tokens an attention lets meet, and which weight row serves them: everything that is known
/// of a call before there are tensors. Immutable; made once and shared by all layers of equal
/// shape, all their calls and all threads.
class TRANSLUTION_API Pairs {
 public:
  /// Null `offsets`: all pairs, without slots.
  Pairs(PairsName name, std::shared_ptr<const OffsetTable> offsets, bool causal);

  int64_t tokens() const { return tokens_; }
  int64_t queries() const { return queries_; }
  /// Rows that a table of weights has; 0: no weights depend on the pair.
  int64_t slot_count() const { return offsets_ ? offsets_->num_slots() : 0; }

  /// [Nq*N]: the slot of each pair, -1 where there is none; empty without slots.
  const std::vector<int32_t>& slots() const { return slots_; }
  /// [Nq*N]: 1 where query i may see token j.
  const std::vector<char>& open() const { return open_; }
  bool all_open() const { return all_open_; }
  bool all_have_slots() const { return all_have_slots_; }
  /// Each pair that has a slot, once, sorted by slot; `i` counts the queries.
  const std::vector<PairSpan>& spans() const { return spans_; }

  /// What others derive from the pairs and two sizes; made once, the last few are kept.
  template <typename T, typename Make>
  std::shared_ptr<const T> derived(int64_t a, int64_t b, const Make& make) const {
    const auto held = derived_.get({typeid(T), a, b}, [&] {
      return std::make_shared<const Derived>(Derived{std::make_shared<const T>(make())});
    });
    return std::static_pointer_cast<const T>(held->value);
  }

 private:
  struct Derived {
    std::shared_ptr<const void> value;
  };

  const PairsName name_;
  const std::shared_ptr<const OffsetTable> offsets_;
  int64_t tokens_ = 0, queries_ = 0;
  std::vector<int32_t> slots_;
  std::vector<char> open_;
  bool all_open_ = true, all_have_slots_ = true;
  std::vector<PairSpan> spans_;
  mutable Recent<std::tuple<std::type_index, int64_t, int64_t>, Derived> derived_{16};
};

/// The pairs of a name: one object for the same name, as long as it is in use or among the latest.
/// Refuses a name that makes no sense.
TRANSLUTION_API std::shared_ptr<const Pairs> find_pairs(const PairsName& name);

/// The table that a text names; null where it names none.
TRANSLUTION_API std::shared_ptr<const OffsetTable> find_offsets(const std::string& text);

}  // namespace translution
