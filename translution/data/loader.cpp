#include "translution/data/loader.h"

#include <utility>

#include "translution/core/error.h"
#include "translution/ops/parallel.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kMaxWorkers = 1024, kMaxPrefetch = 1 << 16;

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)), order_(dataset_->size(), options.order) {
  require(0 <= options.workers && options.workers <= kMaxWorkers, "loader: expected 0 to ",
          kMaxWorkers, " workers, got ", options.workers);
  require(1 <= options.prefetch && options.prefetch <= kMaxPrefetch, "loader: expected 1 to ",
          kMaxPrefetch, " batches ahead, got ", options.prefetch);
  ring_.resize(options.workers == 0 ? 1 : options.prefetch);
  plan_ahead();
  try {
    for (int64_t i = 0; i < options.workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {  // the system is out of threads: end the ones that run
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
  const int64_t capacity = static_cast<int64_t>(ring_.size());
  while (planned_ - delivered_ < capacity) {
    auto plan = order_.next();
    if (!plan) return;
    {
      const std::lock_guard lock(mutex_);
      ring_[planned_++ % capacity] = {std::move(*plan), {}, nullptr, false};
    }
    work_to_do_.notify_one();
  }
}

void Loader::load_into(Entry& entry) const {
  try {
    entry.batch = dataset_->load(entry.plan);
  } catch (...) {
    entry.failure = std::current_exception();
  }
}

void Loader::work() {
  const OneThread one_thread;  // leave the cores to the training step
  std::unique_lock lock(mutex_);
  while (true) {
    work_to_do_.wait(lock, [&] { return stop_ || taken_ < planned_; });
    if (stop_) return;
    Entry& entry = ring_[taken_++ % ring_.size()];
    lock.unlock();
    load_into(entry);
    lock.lock();
    entry.ready = true;
    arrival_.notify_one();
  }
}

std::optional<LoadedBatch> Loader::next() {
  if (delivered_ == planned_) return {};
  Entry& entry = ring_[delivered_ % ring_.size()];
  if (workers_.empty()) {
    load_into(entry);
  } else {
    std::unique_lock lock(mutex_);
    arrival_.wait(lock, [&] { return entry.ready; });
  }
  ++delivered_;
  LoadedBatch loaded{std::move(entry.plan), std::move(entry.batch)};
  const auto failure = std::move(entry.failure);
  plan_ahead();
  if (failure) std::rethrow_exception(failure);
  return loaded;
}

}  // namespace translution
