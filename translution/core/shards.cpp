#include "translution/core/shards.h"

#include <algorithm>

namespace translution {
namespace {

// Accumulators: so many are always affordable in time and in memory, and never more than the last.
constexpr double kFewSums = 8, kSmallSums = 16, kMostSums = 128;
// Multiplications for each number of an accumulator, beyond the first few.
constexpr double kWorthASum = 600;
// Samples of a part of the batch: with fewer, matrices are read again for too few rows.
constexpr int64_t kLeastPart = 64, kMostParts = 16;
// Of a shard: a thread takes 2 us for so many, and about as long to be woken.
constexpr double kLeastWork = 1 << 18;

}  // namespace

ShardCounts count_shards(const SlotWork& work) {
  ShardCounts counts;
  for (int64_t parts = 2; parts <= std::min(kMostParts, work.slots); ++parts)
    if (work.batch % parts == 0 && work.batch / parts >= kLeastPart) counts.parts = parts;
  // In doubles, since the products of large sizes overflow.
  const double width = static_cast<double>(work.width);
  const double rows = static_cast<double>(work.batch) * static_cast<double>(work.pairs) +
                      kRowsOfAMatrix * static_cast<double>(work.slots);
  const double features = static_cast<double>(work.batch) * static_cast<double>(work.tokens);
  const double worth = rows * width / (kWorthASum * features);
  const double table = static_cast<double>(work.slots) * width / features;
  const double sums =
      std::min({std::max(kFewSums, worth),
                std::max(counts.parts > 1 ? kFewSums : kSmallSums, table), kMostSums});
  const double shards =
      std::min(rows * width * width / kLeastWork, static_cast<double>(work.slots));
  counts.sums = static_cast<int64_t>(
      std::max(1.0, std::min(sums, shards / static_cast<double>(counts.parts))));
  return counts;
}

}  // namespace translution
