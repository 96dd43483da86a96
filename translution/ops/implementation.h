#pragma once

namespace translution {

/// While one lives, every op takes its portable path, on all threads: to compare with.
class PortableOnly {
 public:
  PortableOnly();
  ~PortableOnly();
  PortableOnly(const PortableOnly&) = delete;
  PortableOnly& operator=(const PortableOnly&) = delete;
};

/// May an op take its CPU kernels? Not while a PortableOnly lives, nor under
/// TRANSLUTION_IMPL=portable.
bool fused_enabled();

}  // namespace translution
