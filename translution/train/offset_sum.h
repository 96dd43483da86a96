#pragma once

#include <atomic>
#include <string>

#include "translution/distributed/rank_group.h"
#include "translution/ops/group.h"

namespace translution {

/// The sum over an offset group that attention and convolution call (ops/group.h), registered while
/// this object exists. With every sum the ranks also agree whether to stop: a rank that stopped
/// alone would leave the others waiting in the next sum.
class OffsetSum {
 public:
  /// `stop`: a request on this rank.
  OffsetSum(const std::string& name, RankGroup& group, const std::atomic<bool>& stop);
  OffsetSum(const OffsetSum&) = delete;
  OffsetSum& operator=(const OffsetSum&) = delete;

  bool requested() const { return stop_; }
  /// True once `stop` was set on a rank before a sum. Changes on all ranks in the same sum.
  const std::atomic<bool>& agreed() const { return agreed_; }

 private:
  void sum(const std::vector<at::Tensor>& tensors);

  RankGroup& group_;
  const std::atomic<bool>& stop_;
  std::atomic<bool> agreed_{false};
  const GroupRegistration registration_;
};

}  // namespace translution
