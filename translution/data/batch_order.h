#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// The samples of one batch. Random numbers are keyed by the data set's seed, the epoch and the
/// sample (or the batch index, for changes to the batch as a whole). Every worker therefore builds
/// the same batch.
struct BatchPlan {
  int64_t epoch = 0;
  int64_t index = 0;  ///< of the batch within its epoch
  std::vector<int64_t> samples;
  int64_t shard = 0;  ///< of the batch; random changes differ between shards
};

/// Consecutive shards of a batch: `count` of `all` from `first` on. Shard s of B samples has those
/// from B * s / all to B * (s + 1) / all.
struct BatchShards {
  int64_t all = 1, first = 0, count = 1;
};

struct BatchOrderOptions {
  int64_t batch = 256;  ///< samples
  bool shuffle = true;  ///< a new order in every epoch, drawn from the seed; false: ascending
  /// True: a single epoch, whose last batch may be smaller. False: endless epochs that drop the
  /// last partial batch. A set smaller than one batch is one batch.
  bool once = false;
  uint64_t seed = 0;
  int64_t epoch = 0;        ///< first epoch
  int64_t index = 0;        ///< first batch of it; batches_per_epoch() means the next epoch
  BatchShards shards = {};  ///< of every batch, one plan each; at least one sample in each
  int64_t every = 1;        ///< single epochs: only every so many batches
};

/// Training: shuffled and endless, starting at batch `index` of `epoch`.
TRANSLUTION_API BatchOrderOptions training_order(int64_t batch, uint64_t seed, int64_t epoch = 0,
                                                 int64_t index = 0);
/// Evaluation: every sample once, in order.
TRANSLUTION_API BatchOrderOptions evaluation_order(int64_t batch);

/// Assigns samples to batches.
class TRANSLUTION_API BatchOrder {
 public:
  BatchOrder(int64_t size, const BatchOrderOptions& options);

  int64_t batches_per_epoch() const { return batches_; }
  /// The next batch, or the next shard of it; nothing after the end of a single epoch (`once`).
  std::optional<BatchPlan> next();

 private:
  const int64_t size_;
  const BatchOrderOptions options_;
  int64_t batch_, batches_, epoch_, index_;
  int64_t shard_ = 0;           // of those that this order yields
  std::vector<int64_t> order_;  // permutation of the current epoch; empty until first used
};

}  // namespace translution
