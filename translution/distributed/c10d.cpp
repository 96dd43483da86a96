// All that is used of LibTorch's c10d: a TCPStore and Gloo. A build without them has one message.
#include "translution/distributed/connection.h"

#if TRANSLUTION_C10D
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO  // else the header is empty
#endif
#include <cmath>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "translution/ops/compat.h"
#else
#include <stdexcept>
#endif

namespace translution {

#if TRANSLUTION_C10D

namespace {

// In whole seconds: LibTorch 1.13 does not count parts of one.
std::chrono::milliseconds rounded_up(Seconds seconds) {
  return std::chrono::seconds(static_cast<int64_t>(std::ceil(seconds.count())));
}

// c10d's own messages name sockets.
template <typename Work>
auto ask(const Work& work) {
  try {
    return work();
  } catch (const std::exception&) {
    throw std::runtime_error("rank 0, which serves the store, is gone. --resume auto continues");
  }
}

class TcpStore : public Store {
 public:
  explicit TcpStore(const StoreOptions& o) {
    ::c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(o.port);
    options.isServer = o.serves;
    options.waitWorkers = false;
    options.timeout = rounded_up(o.timeout);
    serve_without_libuv(options);
    store = c10::make_intrusive<::c10d::TCPStore>(o.address, options);
  }

  void set(const std::string& key, const std::string& text) override {
    ask([&] { store->set(key, std::vector<uint8_t>(text.begin(), text.end())); });
  }
  bool has(const std::string& key) override {
    return ask([&] { return store->check({key}); });
  }
  std::string get(const std::string& key) override {
    const auto bytes = ask([&] { return store->get(key); });
    return {bytes.begin(), bytes.end()};
  }
  int64_t add(const std::string& key, int64_t amount) override {
    return ask([&] { return store->add(key, amount); });
  }

  c10::intrusive_ptr<::c10d::Store> store;
};

class Gloo : public Group {
 public:
  Gloo(const c10::intrusive_ptr<::c10d::Store>& store, int rank, int size,
       const std::string& interface, Seconds timeout) {
    const auto options = ::c10d::ProcessGroupGloo::Options::create(rounded_up(timeout));
    options->devices = {::c10d::ProcessGroupGloo::createDeviceForInterface(interface)};
    options->threads = 1;
    group_ = c10::make_intrusive<::c10d::ProcessGroupGloo>(store, rank, size, options);
  }

  void sum(at::Tensor& values) override {
    std::vector<at::Tensor> tensors = {values};
    group_->allreduce(tensors)->wait();
  }
  void exchange(at::Tensor sent, at::Tensor received, int partner) override {
    std::vector<at::Tensor> out = {std::move(sent)}, in = {std::move(received)};
    const auto receiving = group_->recv(in, partner, /*tag=*/0);
    const auto sending = group_->send(out, partner, /*tag=*/0);
    sending->wait();
    receiving->wait();
  }

 private:
  c10::intrusive_ptr<::c10d::ProcessGroupGloo> group_;
};

}  // namespace

bool has_c10d() { return true; }

std::unique_ptr<Store> open_store(const StoreOptions& options) {
  return std::make_unique<TcpStore>(options);
}

std::unique_ptr<Group> open_group(Store& store, const std::string& name, int rank, int size,
                                  const std::string& interface, Seconds timeout) {
  const auto own =
      c10::make_intrusive<::c10d::PrefixStore>(name, static_cast<TcpStore&>(store).store);
  return std::make_unique<Gloo>(own, rank, size, interface, timeout);
}

#else

bool has_c10d() { return false; }

std::unique_ptr<Store> open_store(const StoreOptions&) {
  throw std::logic_error("open_store: this build has no c10d");
}

std::unique_ptr<Group> open_group(Store&, const std::string&, int, int, const std::string&,
                                  Seconds) {
  throw std::logic_error("open_group: this build has no c10d");
}

#endif

}  // namespace translution
