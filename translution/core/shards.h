#pragma once

#include <cstdint>

namespace translution {

/// A product of fewer rows takes about as long as one of so many, since it reads the whole matrix.
constexpr int64_t kRowsOfAMatrix = 32;

/// Encodings of fewer channels are never kept for backward: making them again costs little.
constexpr int64_t kWideChannels = 64;

/// The sizes of an attention that decide how its work is cut.
struct SlotWork {
  int64_t tokens, pairs, slots;
  int64_t batch;
  int64_t width;  ///< channels of the widest encoding or feature
};

/// Into how many pieces work is cut: `sums * parts` of them run at the same time.
struct ShardCounts {
  int64_t sums = 1;   ///< accumulators of features, each for some of the slots
  int64_t parts = 1;  ///< equal parts of the batch; they need no accumulators of their own
};

/// A function of the sizes alone, never of the number of threads.
///
/// An accumulator costs time, since it is cleared and added to the others, and memory. So beyond
/// eight there are as many as have 600 multiplications for each of their numbers, and all of them
/// take no more memory than one table or than 16 times the features (8 times, if the batch is cut
/// into parts). A shard has at least 2^18 multiplications, and one slot.
ShardCounts count_shards(const SlotWork& work);

}  // namespace translution
