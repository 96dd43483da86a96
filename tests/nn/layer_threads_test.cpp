// A layer on many threads: all threads get work, and the result does not depend on their number,
// bit for bit.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include "tests/nn/positions.h"
#include "tests/support/thread_count.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

// Counts threads that have begun to work on a shard. Each thread waits until the expected number
// has arrived, so that no thread takes the others' work, or until a timeout.
class Rendezvous {
 public:
  void expect(size_t threads) {
    const std::lock_guard lock(mutex_);
    expected_ = threads;
    threads_.clear();
  }

  void arrive() {
    std::unique_lock lock(mutex_);
    if (expected_ == 0 || !threads_.insert(std::this_thread::get_id()).second) return;
    arrived_.notify_all();
    arrived_.wait_for(lock, std::chrono::seconds(2), [&] { return threads_.size() >= expected_; });
  }

  size_t end() {
    const std::lock_guard lock(mutex_);
    expected_ = 0;
    return threads_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::set<std::thread::id> threads_;
  size_t expected_ = 0;
};

Rendezvous& rendezvous() {
  static Rendezvous instance;
  return instance;
}

constexpr size_t kScratch = 4096;  // bytes

}  // namespace
}  // namespace translution

// A thread allocates its scratch buffer, an array, when it works on its first shard. Nothing else
// allocates arrays of this size meanwhile.
void* operator new[](size_t bytes) {
  if (bytes >= translution::kScratch) translution::rendezvous().arrive();
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace translution {
namespace {

Position position_of(Method method, const char* roles = "qkv") {
  Position position;
  position.method = method;
  position.roles = Roles::parse(roles);
  return position;
}

TEST(LayerThreads, MoreThanEightWorkOnOneLayer) {
  if (!runtime().fused()) GTEST_SKIP() << "no kernels";
  torch::manual_seed(kSeed);
  Translution layer(AttentionOptions(128).heads(2).dim_head(64).grid({14, 14}).cls(true));
  auto x = torch::randn({2, 197, 128}).requires_grad_();
  const ThreadCount threads(16);
  rendezvous().expect(12);
  const auto y = layer->forward(x);
  EXPECT_GE(rendezvous().end(), 12u) << "in forward";
  rendezvous().expect(12);
  y.sum().backward();
  EXPECT_GE(rendezvous().end(), 12u) << "in backward";
}

struct LayerCase {
  AttentionOptions options;
  int64_t batch, tokens;
};

// Layers with many accumulators, with a batch in several parts, with both, and with neither.
std::vector<LayerCase> layer_cases() {
  const auto layer = [](int64_t dim, int64_t heads, std::vector<int64_t> grid, bool text,
                        Method method, const char* roles = "qkv") {
    return AttentionOptions(dim)
        .heads(heads)
        .dim_head(dim / heads)
        .grid(std::move(grid))
        .cls(!text)
        .causal(text)
        .position(position_of(method, roles));
  };
  std::vector<LayerCase> cases = {
      {layer(96, 2, {7, 7}, false, Method::translution), 1, 50},
      {layer(32, 2, {4, 4}, false, Method::translution), 128, 17},
      {layer(48, 3, {12}, true, Method::translution), 192, 12},
      {layer(64, 2, {40}, true, Method::translution, "v"), 3, 40},
      {layer(64, 2, {5, 5}, false, Method::translution, "qk"), 4, 26},
      {layer(48, 2, {4, 4}, false, Method::alpha_translution), 128, 17},
      {layer(48, 2, {24}, true, Method::alpha_translution), 5, 24},
  };
  for (const Method method : {Method::self_attention, Method::relative_key, Method::relative_value,
                              Method::relative_bias, Method::gated_position})
    cases.push_back({layer(48, 3, {5, 5}, false, method), 9, 26});
  return cases;
}

// The output and every gradient.
std::vector<at::Tensor> results_of(Attention& layer, at::Tensor& x, const at::Tensor& d) {
  layer->zero_grad();
  x.mutable_grad() = at::Tensor();
  const auto y = layer->forward(x);
  y.backward(d);
  std::vector<at::Tensor> results = {y.detach(), x.grad()};
  for (const auto& parameter : layer->parameters()) results.push_back(parameter.grad().clone());
  return results;
}

TEST(LayerThreads, AnyNumberGivesTheSameBits) {
  if (!runtime().fused()) GTEST_SKIP() << "not guaranteed by LibTorch's matrix products";
  for (const LayerCase& test : layer_cases()) {
    torch::manual_seed(kSeed);
    Attention layer(test.options);
    auto x = torch::randn({test.batch, test.tokens, test.options.dim()}).requires_grad_();
    const auto d = torch::randn(x.sizes());
    std::vector<at::Tensor> one;
    for (const int threads : {1, 2, 3, 8, 16}) {
      const ThreadCount count(threads);
      const auto results = results_of(layer, x, d);
      if (threads == 1) one = results;
      for (size_t n = 0; n < one.size(); ++n)
        EXPECT_TRUE(torch::equal(results[n], one[n]))
            << name_of(kMethods, test.options.position().method) << " of " << test.tokens
            << " tokens, batch " << test.batch << ", " << threads << " threads, tensor " << n;
    }
  }
}

}  // namespace
}  // namespace translution
