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

/// Identifies a `Pairs` by plain values, so that it is a constant of a traced graph.
///
/// The text describes how tokens relate:
///   ""          all pairs, for any number of tokens; no slots
///   "causal"    the same, with j <= i only
///   "7x7 cls"   the offsets of a grid; any of these words may follow the sides: cls, causal,
///               absolute, direction=R, logarithmic=R, window=R with a radius R
///   "relation mirror=0,2,1 slots=0,1*3,-1,…"   a user-defined relation, pair by pair; n*k is slot
///               n for k pairs; a final "causal" masks j > i
///   "7x7 cls part=0/2"   the same pairs, but only those of a part of the slots (slot_part.h) have
///               a slot. Its number, also as key slot, is its place among the slots of the part
struct PairsName {
  std::string text = {};
  std::vector<int64_t> grid = {};  ///< a grid within the text's grid; empty: the text's grid
  std::vector<int64_t> rows = {};  ///< the tokens that are queries; empty: all
  int64_t tokens = 0;              ///< 0: follows from the text and the grid

  bool operator<(const PairsName& o) const {
    return std::tie(tokens, rows, grid, text) < std::tie(o.tokens, o.rows, o.grid, o.text);
  }
};

/// The text of a grid's offsets, or of any table. `causal` masks j > i, even if the table has slots
/// for these pairs.
TRANSLUTION_API std::string pairs_text(const OffsetOptions& options);
TRANSLUTION_API std::string pairs_text(const OffsetTable& table, bool causal = false);

/// Which pairs of tokens attend to each other, and the slot of each pair: everything about a call
/// that does not depend on tensors. Immutable; built once and shared by all layers of the same
/// shape, all their calls and all threads.
class TRANSLUTION_API Pairs {
 public:
  /// Null `offsets`: all pairs, without slots. `part`: the slots that have rows in the tables, in
  /// the order of these rows; empty: all.
  Pairs(PairsName name, std::shared_ptr<const OffsetTable> offsets, bool causal,
        const std::vector<int64_t>& part = {});

  int64_t tokens() const { return tokens_; }
  int64_t queries() const { return queries_; }
  /// Rows of a weight table; 0: no weights depend on the pair.
  int64_t slot_count() const { return slot_count_; }

  /// [Nq*N]: the slot of each pair, or -1 if it has none; empty if there are no slots.
  const std::vector<int32_t>& slots() const { return slots_; }
  /// [Nq*N]: 1 if query i attends to token j.
  const std::vector<char>& open() const { return open_; }
  bool all_open() const { return all_open_; }
  bool all_have_slots() const { return all_have_slots_; }
  /// Each pair that has a slot, once, sorted by slot; `i` is the index of the query.
  const std::vector<PairSpan>& spans() const { return spans_; }

  /// A value derived from the pairs and the sizes `a` and `b`. Calls make() once; caches the 16
  /// most recently used values.
  template <typename T, typename Make>
  std::shared_ptr<const T> derived(int64_t a, int64_t b, const Make& make) const {
    const auto cached = derived_.get({typeid(T), a, b}, [&] {
      return std::make_shared<const Derived>(Derived{std::make_shared<const T>(make())});
    });
    return std::static_pointer_cast<const T>(cached->value);
  }

 private:
  struct Derived {
    std::shared_ptr<const void> value;
  };
  void keep_part(const std::vector<int64_t>& part);

  const PairsName name_;
  const std::shared_ptr<const OffsetTable> offsets_;
  int64_t tokens_ = 0, queries_ = 0, slot_count_ = 0;
  std::vector<int32_t> slots_;
  std::vector<char> open_;
  bool all_open_ = true, all_have_slots_ = true;
  std::vector<PairSpan> spans_;
  mutable Recent<std::tuple<std::type_index, int64_t, int64_t>, Derived> derived_{16};
};

/// The pairs of a name. Recently used ones are cached, so calls with the same name share an object.
/// Throws if the name is invalid.
TRANSLUTION_API std::shared_ptr<const Pairs> find_pairs(const PairsName& name);

/// The table that a text describes, also if the text has a part of its slots only; null for texts
/// without slots.
TRANSLUTION_API std::shared_ptr<const OffsetTable> find_offsets(const std::string& text);

/// Whether a text has a part of its slots.
TRANSLUTION_API bool has_part(const std::string& text);

/// Rows of the weight tables for the pairs of a text: its slots, or those of its part. 0 without
/// slots.
TRANSLUTION_API int64_t count_rows(const std::string& text);

}  // namespace translution
