#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "translution/core/pairs.h"
#include "translution/core/shards.h"

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
  bool matching;          ///< no token has two pairs, and pair p is (queries[p], keys[p])
  int64_t first_row = 0;  ///< queries and keys of all chunks before it

  int64_t rows() const { return static_cast<int64_t>(queries.size() + keys.size()); }
};

/// How the pairs of an attention are shared out. Shards and parts of the batch are worked through
/// in parallel, each by one thread, and accumulators are merged in order, so that the result is the
/// same bits for any number of threads.
///
/// Slots are cut into sums * parts shards. Shards g * parts to (g + 1) * parts - 1 add to
/// accumulator g, in which each part of the batch has rows of its own.
struct SlotPlan {
  std::vector<Chunk> chunks;
  ShardCounts counts;
  std::vector<std::vector<int32_t>> shards;  ///< chunks of each shard, in order of work
  int64_t max_queries = 0, max_keys = 0;     ///< of any chunk
  int64_t rows = 0;                          ///< of all chunks
};

/// The plan for a batch and a width, made once for each. A table row is written by one shard only,
/// whether as slot or as key slot. Narrow rows make longer chunks.
std::shared_ptr<const SlotPlan> slot_plan(const Pairs& pairs, int64_t batch, int64_t width);

/// Rows that hold all encoded queries and keys of one sample, whatever the plan: `rows` of a plan
/// are no more.
int64_t encoded_rows(const Pairs& pairs);

}  // namespace translution::kernels
