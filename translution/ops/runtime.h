#pragma once

#include <atomic>
#include <cstdint>

#include "translution/core/export.h"
#include "translution/core/names.h"

namespace translution {

/// The implementation that ops on the CPU use.
enum class Implementation { fused, portable };

inline constexpr Named<Implementation> kImplementations[] = {
    {Implementation::fused, "fused", "our CPU kernels, for the types they support"},
    {Implementation::portable, "portable", "plain LibTorch calls, as on other devices"},
};

/// Options that all layers of this process share. Any thread may read and set them at any time; an
/// op that runs meanwhile uses the old or the new value. The setters throw std::invalid_argument
/// for invalid values. Environment variables give the initial values and are read once.
class TRANSLUTION_API Runtime {
 public:
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Number of threads of our kernels, including the calling one. LibTorch's number is separate.
  int threads() const;
  /// 1 to 1024, or 0 for automatic (the default). Automatic is LibTorch's number of threads, so
  /// that both share one team. Exception: if LibTorch started with one thread, nobody has changed
  /// that, and OMP_NUM_THREADS is not set, automatic is all cores that the process may use.
  void set_threads(int64_t count);

  /// Bytes of encodings that a layer may save for backward: the default of its `workspace` option.
  /// Initially TRANSLUTION_WORKSPACE, or 512 MiB. Read when the options of a layer are constructed.
  int64_t workspace() const { return workspace_; }
  void set_workspace(int64_t bytes);

  /// Initially TRANSLUTION_IMPL, or fused. Portable is for comparison.
  Implementation implementation() const { return implementation_; }
  void set_implementation(Implementation implementation) { implementation_ = implementation; }
  bool fused() const { return implementation() == Implementation::fused; }

  /// Maximum bytes of freed temporaries that are held for reuse. Initially a quarter of the memory
  /// that the process may use. Lowering the limit frees the excess, the largest blocks first.
  int64_t pool_limit() const;
  void set_pool_limit(int64_t bytes);
  /// Bytes that are held now and not in use.
  int64_t pool_bytes() const;
  /// Returns the held memory to the system; returns the number of bytes.
  int64_t release_pool();

  /// Floating-point operations of matrix products in our kernels since the process started. Never
  /// reset: take the difference of two readings.
  int64_t product_flops() const;

 private:
  friend Runtime& runtime();
  Runtime();

  std::atomic<int> threads_{0};
  std::atomic<int64_t> workspace_;
  std::atomic<Implementation> implementation_;
};

/// The Runtime of this process. The first call reads the environment variables, and throws
/// std::invalid_argument if one is invalid.
TRANSLUTION_API Runtime& runtime();

}  // namespace translution
