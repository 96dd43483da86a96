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
  int64_t workers = 1;   ///< threads that load; 0: `next` loads
  int64_t prefetch = 4;  ///< batches loaded or being loaded ahead of the caller
};

struct LoadedBatch {
  BatchPlan plan;
  Batch batch;
};

/// Loads batches ahead in threads and hands them out in order: the same ones, bit for bit, for any
/// number of workers. Used from one thread.
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  /// Waits only for the batches that are being loaded at this moment.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; nothing once a single pass is over. An exception from loading it comes out
  /// here; the call after that gives the batch behind.
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
  // These three belong to the caller's thread.
  BatchOrder order_;
  int64_t delivered_ = 0;
  std::vector<std::thread> workers_;
  // The mutex guards the rest; an entry is a worker's own from when it is taken until it is ready.
  std::mutex mutex_;
  std::condition_variable work_to_do_, arrival_;
  std::vector<Entry> ring_;  // a ring: batch n is in entry n % size
  int64_t planned_ = 0;      // batches whose entries have a plan
  int64_t taken_ = 0;        // batches that workers have begun
  bool stop_ = false;
};

}  // namespace translution
