#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace translution {

/// A thread-safe cache of immutable values. If the total cost exceeds `capacity`, evicts the least
/// recently used values; the latest one always stays.
template <typename Key, typename Value>
class Recent {
 public:
  /// `cost` is the share of a value in `capacity`; 1 by default.
  explicit Recent(
      int64_t capacity, int64_t (*cost)(const Value&) = [](const Value&) { return int64_t{1}; })
      : capacity_(capacity), cost_(cost) {}

  /// The value of `key`. If it is not cached, calls make(), which returns a shared_ptr to it.
  template <typename Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().second;
    }
    std::shared_ptr<const Value> value = make();
    entries_.emplace_front(key, value);
    index_[key] = entries_.begin();
    total_ += cost_(*value);
    while (total_ > capacity_ && entries_.size() > 1) {
      total_ -= cost_(*entries_.back().second);
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return value;
  }

 private:
  using Entry = std::pair<Key, std::shared_ptr<const Value>>;

  const int64_t capacity_;
  int64_t (*const cost_)(const Value&);
  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::map<Key, typename std::list<Entry>::iterator> index_;
  int64_t total_ = 0;
};

}  // namespace translution
