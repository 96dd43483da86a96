#include "translution/core/shards.h"

#include <algorithm>

namespace translution {
namespace {

// Numbers of accumulators: always affordable in time, always affordable in memory, and the limit.
constexpr double kCheapSums = 8, kSmallSums = 16, kMaxSums = 128;
// Multiplications per element that pay for an accumulator beyond kCheapSums.
constexpr double kWorkPerElement = 600;
// Samples per part of the batch: with fewer, matrices are re-read for too few rows.
constexpr int64_t kMinPart = 64, kMaxParts = 16;
// Multiplications per shard: a thread takes 2 us for them, and about as long to wake up.
constexpr double kMinWork = 1 << 18;

}  // namespace

ShardCounts count_shards(const SlotWork& work) {
  ShardCounts counts;
  for (int64_t parts = 2; parts <= std::min(kMaxParts, work.slots); ++parts)
    if (work.batch % parts == 0 && work.batch / parts >= kMinPart) counts.parts = parts;
  // In double, since products of large sizes overflow int64_t.
  const double width = static_cast<double>(work.width);
  const double rows = static_cast<double>(work.batch) * static_cast<double>(work.pairs) +
                      kRowsOfAMatrix * static_cast<double>(work.slots);
  const double features = static_cast<double>(work.batch) * static_cast<double>(work.tokens);
  const double affordable = rows * width / (kWorkPerElement * features);
  const double sums_per_table = static_cast<double>(work.slots) * width / features;
  const double sums =
      std::min({std::max(kCheapSums, affordable),
                std::max(counts.parts > 1 ? kCheapSums : kSmallSums, sums_per_table), kMaxSums});
  const double shards = std::min(rows * width * width / kMinWork, static_cast<double>(work.slots));
  counts.sums = static_cast<int64_t>(
      std::max(1.0, std::min(sums, shards / static_cast<double>(counts.parts))));
  return counts;
}

}  // namespace translution
