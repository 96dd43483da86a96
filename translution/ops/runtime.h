#pragma once

#include <atomic>
#include <cstdint>

#include "translution/core/export.h"
#include "translution/core/names.h"

namespace translution {

/// What an op on the CPU takes.
enum class Implementation { fused, portable };

inline constexpr Named<Implementation> kImplementations[] = {
    {Implementation::fused, "fused", "our CPU kernels, where they know the types"},
    {Implementation::portable, "portable", "plain LibTorch calls, as on other devices"},
};

/// What all layers of this process share. Any thread may read and set it at any time; an op that
/// runs meanwhile takes the old value or the new one. A value that makes no sense is refused with
/// std::invalid_argument. Environment variables say what it starts with, and are read once.
class TRANSLUTION_API Runtime {
 public:
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Threads of our kernels, the calling one among them. LibTorch's own are not touched.
  int threads() const;
  /// 1 to 1024; 0: automatic, which is how it starts. Automatic is LibTorch's number, so that both
  /// share one team. But where LibTorch started with one thread, nobody has changed that, and
  /// OMP_NUM_THREADS is not set, it is every core that the process may use.
  void set_threads(int64_t count);

  /// Bytes of encodings that a layer may keep for backward, where its options do not say: 512 MiB,
  /// or TRANSLUTION_WORKSPACE. Read when the options of a layer are made.
  int64_t workspace() const { return workspace_; }
  void set_workspace(int64_t bytes);

  /// Fused, or TRANSLUTION_IMPL. Portable is for comparison.
  Implementation implementation() const { return implementation_; }
  void set_implementation(Implementation implementation) { implementation_ = implementation; }
  bool fused() const { return implementation() == Implementation::fused; }

  /// Bytes of freed temporaries that are kept for the next call: a quarter of the memory that the
  /// process may take. A lower limit frees what exceeds it, the largest blocks first.
  int64_t pool_limit() const;
  void set_pool_limit(int64_t bytes);
  /// Bytes that are kept now, and not in use.
  int64_t pool_bytes() const;
  /// Gives them back to the system; returns how many they were.
  int64_t release_pool();

  /// Floating-point operations of matrix products in our kernels since the process started: a
  /// difference of two readings measures what ran in between. Never reset.
  int64_t product_flops() const;

 private:
  friend Runtime& runtime();
  Runtime();

  std::atomic<int> threads_{0};
  std::atomic<int64_t> workspace_;
  std::atomic<Implementation> implementation_;
};

/// The one of this process. The first call reads the environment, and refuses bad values there.
TRANSLUTION_API Runtime& runtime();

}  // namespace translution
