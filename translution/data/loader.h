#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "translution/data/batch_order.h"
#include "translution/data/dataset.h"

namespace translution {

struct LoaderOptions {
  BatchOrderOptions order;
  int64_t workers = 1;   ///< loader threads; 0: next() loads on the caller's thread
  int64_t prefetch = 4;  ///< batches loaded or being loaded ahead of the caller
};

struct LoadedBatch {
  BatchPlan plan;
  Batch batch;
};

/// Loads batches ahead of time on worker threads and returns them in order. The batches are the
/// same, bit for bit, for any number of workers. Not thread-safe: call it from one thread.
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  /// Waits only for the batches that are being loaded.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; nothing after the end of a single epoch. Rethrows the exception if loading the
  /// batch failed; the following call returns the batch after it.
  std::optional<LoadedBatch> next();

  int64_t batches_per_epoch() const { return order_.batches_per_epoch(); }

 private:
  struct Entry {
    BatchPlan plan;
    Batch batch;
    std::exception_ptr failure;
    bool ready = false;
  };

  void plan_ahead();
  void work();
  void load_into(Entry& entry) const;
  void join_workers();

  const std::shared_ptr<const Dataset> dataset_;
  // Used only by the caller's thread:
  BatchOrder order_;
  int64_t delivered_ = 0;
  std::vector<std::thread> workers_;
  // The mutex guards the rest. A worker owns an entry from when it takes it until it is ready.
  std::mutex mutex_;
  std::condition_variable work_to_do_, arrival_;
  std::vector<Entry> ring_;  // batch n is in entry n % size
  int64_t planned_ = 0;      // batches that have a plan
  int64_t taken_ = 0;        // batches that workers have begun to load
  bool stop_ = false;
};

}  // namespace translution
