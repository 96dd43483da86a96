#include "worker.h"

#include "translution/core/error.h"

namespace translution::serve {
namespace {

// Background work waits until requests have paused for so long: what it begins during a drag would
// only be given up.
constexpr std::chrono::milliseconds kPause{120}, kIdle{50};

}  // namespace

Worker::Worker(size_t most_waiting, std::function<bool()> background)
    : most_waiting_(most_waiting),
      background_(std::move(background)),
      thread_([this] { work(); }) {}

Worker::~Worker() {
  stop();
  thread_.join();
}

void Worker::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  wanted_ = true;
  tasks_.clear();  // whoever waits gets a future_error
  changed_.notify_all();
}

void Worker::add(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw Refusal(kBusy, "the server stops");
  if (tasks_.size() >= most_waiting_)
    throw Refusal(kBusy, detail::join("busy: ", most_waiting_, " requests wait; try again later"));
  tasks_.push_back(std::move(task));
  last_task_ = Clock::now();
  wanted_ = true;
  changed_.notify_all();
}

// The next task; null if it is time for background work.
std::function<void()> Worker::next_task() {
  std::unique_lock lock(mutex_);
  if (tasks_.empty()) {
    wanted_ = stopping_;
    const auto pause = last_task_ + kPause - Clock::now();
    if (pause > Clock::duration::zero())
      changed_.wait_for(lock, pause, [this] { return stopping_ || !tasks_.empty(); });
  }
  if (tasks_.empty()) return nullptr;
  auto task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

void Worker::work() {
  while (true) {
    const auto task = next_task();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if (task) {
      task();
    } else if (!background_()) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kIdle, [this] { return stopping_ || !tasks_.empty(); });
    }
  }
}

}  // namespace translution::serve
