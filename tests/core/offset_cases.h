#pragma once

#include <map>
#include <ostream>
#include <set>
#include <tuple>
#include <vector>

#include "translution/core/error.h"
#include "translution/core/offsets.h"
#include "translution/core/position.h"

namespace translution {

/// Describes a case in a failure message: "3x4 cls causal relative direction 1".
inline std::string describe(const OffsetOptions& o) {
  const char* sharing = o.sharing == Sharing::window ? "window" : name_of(kSharings, o.sharing);
  return detail::join(detail::times(o.grid), o.cls ? " cls" : "", o.causal ? " causal" : "", " ",
                      name_of(kEncodings, o.encoding), " ", sharing, " ", o.radius);
}

/// Grids of one to four dimensions with every combination of options.
inline std::vector<OffsetOptions> offset_cases() {
  std::vector<OffsetOptions> cases;
  const std::vector<std::vector<int64_t>> grids = {
      {1}, {2}, {9}, {17}, {3, 4}, {1, 6}, {7, 7}, {2, 3, 4}, {3, 1, 2}, {2, 2, 3, 2}};
  for (const auto& grid : grids) {
    for (const bool cls : {false, true}) {
      for (const bool causal : {false, true}) {
        OffsetOptions options{grid, cls, causal};
        cases.push_back(options);
        for (const auto sharing : {Sharing::direction, Sharing::logarithmic, Sharing::window})
          for (const int64_t radius : {0, 1, 2, 20})
            cases.push_back({grid, cls, causal, Encoding::relative, sharing, radius});
        options.encoding = Encoding::absolute;
        cases.push_back(options);
      }
    }
  }
  return cases;
}

/// (i, j, slot, key slot) of every pair, once for each occurrence in the spans.
using PairList = std::multiset<std::tuple<int64_t, int64_t, int64_t, int64_t>>;

inline PairList list_pairs(const std::vector<PairSpan>& spans) {
  PairList pairs;
  for (const PairSpan& span : spans)
    for (int64_t t = 0; t < span.length; ++t)
      pairs.emplace(span.i + t * span.di, span.j + t * span.dj, span.slot, span.key_slot);
  return pairs;
}

/// The pairs whose tokens are both below `num_tokens`, read pair by pair.
inline PairList list_pairs(const OffsetTable& table, int64_t num_tokens) {
  PairList pairs;
  for (int64_t i = 0; i < num_tokens; ++i)
    for (int64_t j = 0; j < num_tokens; ++j)
      if (table.slot(i, j) >= 0) pairs.emplace(i, j, table.slot(i, j), table.key_slot(i, j));
  return pairs;
}

}  // namespace translution
