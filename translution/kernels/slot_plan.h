#pragma once

#include <cstdint>
#include <vector>

#include "translution/core/offsets.h"

namespace translution::kernels {

/// A piece of one slot's work, small enough that its rows stay in the cache between two products.
/// Each token stands once in `queries` or `keys`: a token that meets many others is encoded once.
struct Chunk {
  struct Pair {
    int32_t query, key;  ///< places in `queries` and `keys`
  };
  int64_t slot, key_slot;
  std::vector<int64_t> queries, keys;
  std::vector<Pair> pairs;
  bool matching;  ///< no token has two pairs, and pair p is (queries[p], keys[p])
};

/// How the pairs of an attention are shared out. The plan depends on the runs and the sizes alone,
/// never on the number of threads: shards are worked through in parallel, each by one thread and
/// into an accumulator of its own, and merged in order, so that the result is always the same bits.
struct SlotPlan {
  static constexpr int kShards = 8;

  std::vector<Chunk> chunks;
  std::vector<std::vector<int32_t>> shards;  ///< chunks of each shard, in order of work
  int64_t max_queries = 0, max_keys = 0;     ///< of any chunk
};

/// A table row is written by one shard only, whether as slot or as key slot. `width` is that of the
/// widest encoding or feature: narrow rows make longer chunks.
SlotPlan make_slot_plan(const std::vector<Run>& runs, int64_t batch, int64_t width);

}  // namespace translution::kernels
