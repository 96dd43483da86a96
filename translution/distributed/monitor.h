#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "translution/distributed/connection.h"

namespace translution {

/// Watches over the processes of a world, each by a counter in the store that its own monitor
/// advances. Rank 0 watches all counters, the others that of rank 0 and the store itself. When one
/// process stops, the first monitor that notices stores the reason; every monitor then writes it to
/// standard error and ends its process with exit code 1. The main thread cannot: it may wait for
/// the lost process in an exchange.
class Monitor {
 public:
  /// `place`: of the store, for messages. A process is lost after `timeout` at most.
  Monitor(std::unique_ptr<Store> store, int rank, int size, Seconds timeout, std::string place);
  /// Stops watching.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Stores the reason why this process stops, and waits until the others have it, for a short time
  /// at most. This process goes on.
  void report(const std::string& reason);
  /// Stores this number under the key with every heartbeat from now on.
  void publish(std::string key, std::shared_ptr<const std::atomic<int64_t>> number);
  /// Waits until this monitor ends the process; returns if nobody is missed within the timeout.
  void wait_for_verdict();

 private:
  using Clock = std::chrono::steady_clock;
  struct Beat {
    int64_t count = 0;
    Clock::time_point changed = Clock::now();
  };

  void beat();
  void watch_store();
  void check(int rank);
  void store_numbers();
  void end_with(const std::string& reason);
  bool sleep(Seconds time);
  Seconds interval() const { return 0.1 * timeout_; }  // of heartbeats
  Seconds limit() const { return 0.7 * timeout_; }     // the rest is for noticing and telling
  Seconds to_tell() const { return 0.15 * timeout_; }  // until every other monitor has looked

  const std::unique_ptr<Store> store_;
  const int rank_, size_;
  const Seconds timeout_;
  const std::string place_;
  std::vector<Beat> beats_;
  std::atomic<Clock::time_point> answered_;  // the store's last answer
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false, reported_ = false;
  std::vector<std::pair<std::string, std::shared_ptr<const std::atomic<int64_t>>>> numbers_;
  std::thread beater_, watcher_;
};

}  // namespace translution
