#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// Which samples a batch has. Whatever is random in it is drawn from the set's seed, the epoch and
/// the sample (or the index, for what concerns the batch as a whole), so that every worker makes
/// the same batch.
struct BatchPlan {
  int64_t epoch = 0;
  int64_t index = 0;  ///< of the batch in its epoch
  std::vector<int64_t> samples;
};

struct BatchOrderOptions {
  int64_t batch = 256;  ///< samples
  bool shuffle = true;  ///< another order in every epoch, decided by the seed; otherwise by number
  /// One pass, whose last batch may be smaller. Otherwise epoch after epoch without an end: what
  /// does not fill a batch is left out, unless the whole set does not; then all of it is one batch.
  bool once = false;
  uint64_t seed = 0;
  int64_t epoch = 0;  ///< where to begin
  int64_t index = 0;  ///< the batch in that epoch; the number of batches stands for the next epoch
};

/// Training: shuffled, without an end, from a position on.
TRANSLUTION_API BatchOrderOptions training_order(int64_t batch, uint64_t seed, int64_t epoch = 0,
                                                 int64_t index = 0);
/// Evaluation: every sample once, in order.
TRANSLUTION_API BatchOrderOptions evaluation_order(int64_t batch);

/// Which samples make which batch.
class TRANSLUTION_API BatchOrder {
 public:
  BatchOrder(int64_t size, const BatchOrderOptions& options);

  int64_t batches_per_epoch() const { return batches_; }
  /// The next batch; nothing once a single pass is over.
  std::optional<BatchPlan> next();

 private:
  const int64_t size_;
  const BatchOrderOptions options_;
  int64_t batch_, batches_, epoch_, index_;
  std::vector<int64_t> order_;  // of the current epoch; empty until it is needed
};

}  // namespace translution
