#pragma once

#include <cstdint>

#include "translution/data/dataset.h"
#include "translution/data/point_cloud.h"

namespace translution {

/// A cloud and its target: the number of a class, or any number.
struct CloudSample {
  PointCloud cloud;
  double target = 0;
};

/// Clouds of points. load() returns features [B,N,channels], positions [B,N,axes], a mask [B,N] and
/// targets, int64 or float [B]. N is the size of the largest cloud of the batch; smaller clouds are
/// followed by zeros.
class CloudDataset : public Dataset {
 public:
  Batch load(const BatchPlan& plan) const final;

 protected:
  virtual CloudSample read(int64_t epoch, int64_t sample) const = 0;
  virtual bool targets_are_classes() const { return true; }
};

}  // namespace translution
