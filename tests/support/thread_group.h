#pragma once

#include <ATen/ATen.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "translution/ops/group.h"

namespace translution::testing {

/// A group whose ranks are threads of this process. Its sum waits for all ranks and adds in their
/// order.
class ThreadGroup {
 public:
  explicit ThreadGroup(int64_t ranks) : given_(ranks) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      registrations_.push_back(register_group(
          name(rank),
          [this, rank](const std::vector<at::Tensor>& tensors) { sum(rank, tensors); }));
  }

  int64_t ranks() const { return static_cast<int64_t>(given_.size()); }
  std::string name(int64_t rank) const { return "threads " + std::to_string(rank); }
  /// Numbers that each rank has passed to the sum.
  int64_t numbers() const { return numbers_; }

  /// Calls work(rank) in a thread for each rank. Throws the first error of a rank.
  void run(const std::function<void(int64_t rank)>& work) {
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < ranks(); ++rank)
      threads.emplace_back([&, rank] {
        try {
          work(rank);
        } catch (...) {
          fail(std::current_exception());
        }
      });
    for (auto& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    changed_.notify_all();
  }

  void sum(int64_t rank, const std::vector<at::Tensor>& tensors) {
    std::unique_lock lock(mutex_);
    given_[rank] = tensors;
    const int64_t round = round_;
    if (++arrived_ == ranks()) {
      add_up();
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round || error_; });
    if (round_ == round) throw std::runtime_error("another rank failed");
  }

  void add_up() {
    const at::NoGradGuard no_grad;
    for (size_t t = 0; t < given_[0].size(); ++t) {
      const auto total = given_[0][t].clone();
      numbers_ += total.numel();
      for (int64_t rank = 0; rank < ranks(); ++rank) {
        TORCH_CHECK(given_[rank].size() == given_[0].size() &&
                        given_[rank][t].sizes() == total.sizes() && given_[rank][t].is_contiguous(),
                    "the ranks sum different tensors");
        if (rank > 0) total.add_(given_[rank][t]);
      }
      for (const auto& tensors : given_) tensors[t].copy_(total);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<at::Tensor>> given_;  // by rank
  int64_t arrived_ = 0, round_ = 0, numbers_ = 0;
  std::exception_ptr error_;
  std::vector<GroupRegistration> registrations_;
};

}  // namespace translution::testing
