#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "http.h"

namespace translution::serve {

/// One thread that evaluates models, because a model uses all cores. Tasks of requests run in
/// order; the queue has a limit. While there are none, the thread does background work in pieces.
class Worker {
 public:
  /// `background` does a piece of work and returns false if there is none. It should return early
  /// when `wanted`, by an exception or otherwise.
  Worker(size_t most_waiting, std::function<bool()> background);
  /// Waits for the current piece of work only.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Runs the work on the thread and returns its result, or throws what it throws. Throws Refusal
  /// if too many tasks wait, if it was not done in time, and while the worker stops.
  template <typename Work>
  auto run(Work work) -> decltype(work()) {
    auto task = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
    auto result = task->get_future();
    // The queue is the only owner: when it is cleared, the future ends.
    add([task = std::move(task)] { (*task)(); });
    if (result.wait_for(kLongest) != std::future_status::ready)
      throw Refusal(kTooLate, "the answer took too long; try again later");
    try {
      return result.get();
    } catch (const std::future_error&) {
      throw Refusal(kBusy, "the server stops");
    }
  }

  /// Whether a request waits or the worker stops.
  bool wanted() const { return wanted_; }
  /// From now on, tasks are refused and `wanted` is true.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongest{20};

  void add(std::function<void()> task);
  void work();
  std::function<void()> next_task();

  const size_t most_waiting_;
  const std::function<bool()> background_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  Clock::time_point last_task_;  // when one was last added
  std::atomic<bool> wanted_{false};
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace translution::serve
