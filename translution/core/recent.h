#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace translution {

/// Immutable values that are made once and found again by their key. Threads may share a table.
/// Beyond `most` in all, those that were not asked for the longest go; the latest always stays.
template <typename Key, typename Value>
class Recent {
 public:
  /// `cost` is what a value counts towards `most`.
  explicit Recent(
      int64_t most, int64_t (*cost)(const Value&) = [](const Value&) { return int64_t{1}; })
      : most_(most), cost_(cost) {}

  /// The value of a key; make() returns a shared_ptr to it where there is none yet.
  template <typename Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(key);
    if (found != places_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().second;
    }
    std::shared_ptr<const Value> value = make();
    entries_.emplace_front(key, value);
    places_[key] = entries_.begin();
    total_ += cost_(*value);
    while (total_ > most_ && entries_.size() > 1) {
      total_ -= cost_(*entries_.back().second);
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return value;
  }

 private:
  using Entry = std::pair<Key, std::shared_ptr<const Value>>;

  const int64_t most_;
  int64_t (*const cost_)(const Value&);
  std::mutex mutex_;
  std::list<Entry> entries_;  // latest use first
  std::map<Key, typename std::list<Entry>::iterator> places_;
  int64_t total_ = 0;
};

}  // namespace translution
