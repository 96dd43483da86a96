#include "translution/data/loader.h"

#include <utility>

#include "translution/core/error.h"
#include "translution/ops/parallel.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kMostWorkers = 1024, kMostPrefetch = 1 << 16;

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)), order_(dataset_->size(), options.order) {
  require(0 <= options.workers && options.workers <= kMostWorkers, "loader: wanted 0 to ",
          kMostWorkers, " workers, got ", options.workers);
  require(1 <= options.prefetch && options.prefetch <= kMostPrefetch, "loader: wanted 1 to ",
          kMostPrefetch, " batches ahead, got ", options.prefetch);
  slots_.resize(options.workers == 0 ? 1 : options.prefetch);
  plan_ahead();
  try {
    for (int64_t i = 0; i < options.workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {  // no more threads to be had: those that run must end first
    join_workers();
    throw;
  }
}

Loader::~Loader() { join_workers(); }

void Loader::join_workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_to_do_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void Loader::plan_ahead() {
  const int64_t room = static_cast<int64_t>(slots_.size());
  while (planned_ - delivered_ < room) {
    auto plan = order_.next();
    if (!plan) return;
    {
      const std::lock_guard lock(mutex_);
      slots_[planned_++ % room] = {std::move(*plan), {}, nullptr, false};
    }
    work_to_do_.notify_one();
  }
}

void Loader::load_into(Slot& slot) const {
  try {
    slot.batch = dataset_->load(slot.plan);
  } catch (...) {
    slot.failure = std::current_exception();
  }
}

void Loader::work() {
  const OneThread alone;  // the cores belong to the training step
  std::unique_lock lock(mutex_);
  while (true) {
    work_to_do_.wait(lock, [&] { return stop_ || taken_ < planned_; });
    if (stop_) return;
    Slot& slot = slots_[taken_++ % slots_.size()];
    lock.unlock();
    load_into(slot);
    lock.lock();
    slot.ready = true;
    arrival_.notify_one();
  }
}

std::optional<LoadedBatch> Loader::next() {
  if (delivered_ == planned_) return {};
  Slot& slot = slots_[delivered_ % slots_.size()];
  if (workers_.empty()) {
    load_into(slot);
  } else {
    std::unique_lock lock(mutex_);
    arrival_.wait(lock, [&] { return slot.ready; });
  }
  ++delivered_;
  LoadedBatch loaded{std::move(slot.plan), std::move(slot.batch)};
  const auto failure = std::move(slot.failure);
  plan_ahead();
  if (failure) std::rethrow_exception(failure);
  return loaded;
}

}  // namespace translution
