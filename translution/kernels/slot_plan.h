#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "translution/core/pairs.h"
#include "translution/core/shards.h"

namespace translution::kernels {

/// Pairs of one slot, few enough that their rows stay in the cache between two products. Each token
/// is listed once in `queries` or `keys`, so a token with many partners is encoded once.
struct Chunk {
  struct Pair {
    int32_t query, key;  ///< indices into `queries` and `keys`
  };
  int64_t slot, key_slot;
  std::vector<int64_t> queries, keys;
  std::vector<Pair> pairs;
  bool matching;          ///< each token has one pair, and pair p is (queries[p], keys[p])
  int64_t first_row = 0;  ///< total rows() of the preceding chunks

  int64_t rows() const { return static_cast<int64_t>(queries.size() + keys.size()); }
};

/// How the pairs of an attention call are distributed. Shards and parts of the batch run in
/// parallel, each on one thread, and accumulators are merged in a fixed order, so the result is
/// bitwise identical for any number of threads.
///
/// Slots are split into sums * parts shards. Shards g * parts to (g + 1) * parts - 1 add to
/// accumulator g, in which each part of the batch has its own rows.
struct SlotPlan {
  std::vector<Chunk> chunks;
  ShardCounts counts;
  std::vector<std::vector<int32_t>> shards;  ///< chunks of each shard, in order of execution
  int64_t max_queries = 0, max_keys = 0;     ///< maximum over all chunks
  int64_t rows = 0;                          ///< total over all chunks
};

/// The plan for a batch size and a width; cached in `pairs`. Each table row is written by one shard
/// only, as a slot or as a key slot. Narrow rows give longer chunks.
std::shared_ptr<const SlotPlan> slot_plan(const Pairs& pairs, int64_t batch, int64_t width);

/// Upper bound of SlotPlan::rows over all plans: rows of all encoded queries and keys of one
/// sample.
int64_t encoded_rows(const Pairs& pairs);

}  // namespace translution::kernels
