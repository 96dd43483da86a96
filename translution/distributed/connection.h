#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "translution/distributed/port.h"

namespace translution {

/// A key-value store that all processes share.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& text) = 0;
  virtual bool has(const std::string& key) = 0;
  virtual std::string get(const std::string& key) = 0;  ///< waits until the key is set
  /// Adds to a counter, which begins at 0; returns the sum.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
};

/// Exchanges tensors between processes. A call fails with an exception if another process closes
/// its connection or does not take part in time.
class Group {
 public:
  virtual ~Group() = default;
  /// The sum over all ranks; the same bits on each.
  virtual void sum(at::Tensor& values) = 0;
  /// Sends to the partner, and receives what it sends.
  virtual void exchange(at::Tensor sent, at::Tensor received, int partner) = 0;
};

/// The key of the reason why a world has failed.
inline constexpr const char* kFailure = "failure";

/// Whether this build has LibTorch's c10d with Gloo, which implements both.
bool has_c10d();

struct StoreOptions {
  std::string address;
  int port = 0;
  bool serves = false;  ///< the store is in this process
  Seconds timeout{};    ///< for connecting
};
std::unique_ptr<Store> open_store(const StoreOptions& options);

/// `store`: from open_store. The processes of a group give the same name, which no other group has.
std::unique_ptr<Group> open_group(Store& store, const std::string& name, int rank, int size,
                                  const std::string& interface, Seconds timeout);

}  // namespace translution
