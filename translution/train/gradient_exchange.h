#pragma once

#include <torch/types.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <vector>

#include "translution/core/export.h"
#include "translution/ops/compat.h"

namespace translution {

/// Sums the gradients of a batch over processes while backward computes those of earlier layers.
///
/// The gradients, one behind the other, are cut into buckets of equal size. A thread sums them in a
/// fixed order, the last bucket first, each as soon as backward has completed its gradients. All
/// processes must call start and finish for the same steps.
class TRANSLUTION_API GradientExchange {
 public:
  /// Replaces the elements of these tensors by their sums over all processes.
  using Sum = std::function<void(const std::vector<torch::Tensor>&)>;
  /// `bucket`: floats that `sum` takes at a time.
  GradientExchange(std::vector<torch::Tensor> parameters, Sum sum, int64_t bucket);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// The next backward completes the gradients.
  void start();
  /// Waits for all sums, which become the gradients. A gradient that this process lacks counts as
  /// zeros; one that all lack stays undefined. Throws what `sum` threw. A step may end here without
  /// start or backward, so that the other processes do not wait.
  void finish();
  /// Buckets of all steps whose sum began before finish was called.
  int64_t early() const { return early_; }

 private:
  struct Piece {
    size_t parameter;
    int64_t begin, count;  // elements
  };
  using Bucket = std::vector<Piece>;
  class Hook;

  void complete(size_t parameter);
  void sum_all();
  template <typename Ready>
  bool wait_until(const Ready& ready);
  bool is_complete(const Bucket& bucket) const;
  std::vector<torch::Tensor> tensors_of(const Bucket& bucket);

  const std::vector<torch::Tensor> parameters_;
  const Sum sum_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<NodePointer, uintptr_t>> hooks_;  // nodes of autograd, and keys
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<torch::Tensor> gradients_;  // those that are complete
  torch::Tensor used_;                    // [parameters]: how many processes have a gradient
  bool running_ = false, finishing_ = false, abandoned_ = false;
  std::atomic<int64_t> early_{0};
  std::future<void> sums_;
};

}  // namespace translution
