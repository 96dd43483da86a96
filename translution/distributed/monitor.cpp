#include "translution/distributed/monitor.h"

#include <cstdio>
#include <cstdlib>

#include "translution/core/error.h"
#include "translution/core/settings.h"

namespace translution {

using namespace detail;

namespace {

std::string beat_key(int rank) { return join("beat/", rank); }

}  // namespace

Monitor::Monitor(std::unique_ptr<Store> store, int rank, int size, Seconds timeout,
                 std::string place)
    : store_(std::move(store)),
      rank_(rank),
      size_(size),
      timeout_(timeout),
      place_(std::move(place)),
      beats_(size),
      answered_(Clock::now()),
      beater_([this] { beat(); }),
      watcher_([this] { watch_store(); }) {}

Monitor::~Monitor() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  beater_.join();
  watcher_.join();
}

// Returns true when the monitor is to stop.
bool Monitor::sleep(Seconds time) {
  std::unique_lock lock(mutex_);
  return stopping_.wait_for(lock, time, [this] { return stop_; });
}

void Monitor::end_with(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (stop_ || reported_) return;  // this process ends by itself
  std::fputs(("translution: " + reason + "\n").c_str(), stderr);
  std::fflush(stderr);
  std::_Exit(1);
}

void Monitor::check(int rank) {
  auto& [count, changed] = beats_[rank];
  const int64_t now = store_->add(beat_key(rank), 0);
  if (now != count) count = now, changed = Clock::now();
  if (Clock::now() - changed < limit()) return;
  const auto reason = join("rank ", rank, " has not answered for ", number_text(limit().count()),
                           " s; it died, hangs or lost its connection. --resume auto continues");
  store_->set(kFailure, reason);
  if (rank_ == 0) sleep(to_tell());  // the store ends with this process
  end_with(reason);
}

void Monitor::publish(std::string key, std::shared_ptr<const std::atomic<int64_t>> number) {
  const std::lock_guard lock(mutex_);
  numbers_.emplace_back(std::move(key), std::move(number));
}

void Monitor::store_numbers() {
  decltype(numbers_) numbers;
  {
    const std::lock_guard lock(mutex_);
    numbers = numbers_;
  }
  for (const auto& [key, number] : numbers) store_->set(key, std::to_string(*number));
}

void Monitor::beat() {
  try {
    do {
      store_->add(beat_key(rank_), 1);
      store_numbers();
      if (store_->has(kFailure)) end_with(store_->get(kFailure));
      if (rank_ > 0) check(0);
      for (int rank = 1; rank_ == 0 && rank < size_; ++rank) check(rank);
      answered_ = Clock::now();
    } while (!sleep(interval()));
  } catch (const std::exception&) {  // the process that serves the store is gone
    end_with(
        join("rank 0, which serves the store at ", place_, ", is gone. --resume auto continues"));
  }
}

// The store's answer cannot be waited for with a time limit, so another thread looks at the clock.
void Monitor::watch_store() {
  while (!sleep(timeout_ / 20))
    if (Clock::now() - answered_.load() > limit())
      end_with(join("rank 0, which serves the store at ", place_, ", has not answered for ",
                    number_text(limit().count()), " s. --resume auto continues"));
}

void Monitor::report(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    reported_ = true;
  }
  try {
    if (!store_->has(kFailure)) store_->set(kFailure, reason);
  } catch (const std::exception&) {
    return;  // nobody can be told
  }
  if (rank_ == 0) sleep(to_tell());  // the store ends with this process
}

void Monitor::wait_for_verdict() { sleep(timeout_); }

}  // namespace translution
