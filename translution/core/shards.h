#pragma once

#include <cstdint>

namespace translution {

/// A product with fewer rows than this takes about as long, since it reads the complete matrix.
constexpr int64_t kRowsOfAMatrix = 32;

/// Encodings with fewer channels are never saved for backward: recomputing them is cheap.
constexpr int64_t kWideChannels = 64;

/// The sizes of an attention call that determine its shards.
struct SlotWork {
  int64_t tokens, pairs, slots;
  int64_t batch;
  int64_t width;  ///< channels of the widest encoding or feature
};

/// The number of shards: `sums * parts` can run in parallel.
struct ShardCounts {
  int64_t sums = 1;   ///< feature accumulators; each takes a share of the slots
  int64_t parts = 1;  ///< equal parts of the batch; they share accumulators
};

/// Chooses the number of shards. Depends on the sizes only, not on the number of threads.
///
/// An accumulator costs memory, and time to clear it and to add it to the others. More than eight
/// are used only if each does at least 600 multiplications per element, and if all of them together
/// take no more memory than one weight table or 16 times the features (8 times if the batch is
/// split into parts). At most 128 are used. A shard has at least 2^18 multiplications and one slot.
ShardCounts count_shards(const SlotWork& work);

}  // namespace translution
