#include "translution/ops/runtime.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "translution/core/cpu_info.h"
#include "translution/core/error.h"
#include "translution/kernels/gemm.h"
#include "translution/ops/large.h"

namespace translution {

using namespace detail;

namespace {

constexpr int kMaxThreads = 1024;

// Empty if the variable is not set.
std::string from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// The state when the library was loaded.
const pid_t kLoadingProcess = getpid();
const bool kTorchHadOneThread =
    at::get_num_threads() == 1 && from_environment("OMP_NUM_THREADS").empty();

// A forked process uses LibTorch's number: it has no OpenMP threads any more, and data-loading
// workers set LibTorch's number to one.
int automatic_threads() {
  const int torch_threads = at::get_num_threads();
  if (torch_threads > 1 || !kTorchHadOneThread || getpid() != kLoadingProcess) return torch_threads;
  static const int cores = usable_cores();
  return cores;
}

int64_t initial_workspace() {
  const std::string text = from_environment("TRANSLUTION_WORKSPACE");
  if (text.empty()) return int64_t{512} << 20;
  char* end = nullptr;
  const int64_t count = std::strtoll(text.c_str(), &end, 10);
  const std::string suffix = end;
  const int shift = suffix.empty()  ? 0
                    : suffix == "K" ? 10
                    : suffix == "M" ? 20
                    : suffix == "G" ? 30
                                    : -1;
  require(end != text.c_str() && shift >= 0 && count >= 0 && count <= INT64_MAX >> shift,
          "TRANSLUTION_WORKSPACE: expected bytes such as 0, 65536, 512M or 4G, got '", text, "'");
  return count << shift;
}

Implementation initial_implementation() {
  const std::string text = from_environment("TRANSLUTION_IMPL");
  require(text.empty() || text == "fused" || text == "portable",
          "TRANSLUTION_IMPL: expected fused or portable, got '", text, "'");
  return text == "portable" ? Implementation::portable : Implementation::fused;
}

}  // namespace

Runtime::Runtime() : workspace_(initial_workspace()), implementation_(initial_implementation()) {}

int Runtime::threads() const { return threads_ > 0 ? threads_.load() : automatic_threads(); }

void Runtime::set_threads(int64_t count) {
  require(0 <= count && count <= kMaxThreads, "runtime: expected 1 to ", kMaxThreads,
          " threads, or 0 for automatic, got ", count);
  threads_ = static_cast<int>(count);
}

void Runtime::set_workspace(int64_t bytes) {
  require(bytes >= 0, "runtime: expected a workspace of 0 or more bytes, got ", bytes);
  workspace_ = bytes;
}

int64_t Runtime::pool_limit() const { return BlockPool::instance().limit(); }

void Runtime::set_pool_limit(int64_t bytes) {
  require(bytes >= 0, "runtime: expected a pool limit of 0 or more bytes, got ", bytes);
  BlockPool::instance().set_limit(bytes);
}

int64_t Runtime::pool_bytes() const { return BlockPool::instance().bytes(); }

int64_t Runtime::release_pool() { return BlockPool::instance().release(); }

int64_t Runtime::product_flops() const { return kernels::gemm_flops(); }

Runtime& runtime() {
  static Runtime shared;
  return shared;
}

}  // namespace translution
