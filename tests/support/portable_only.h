#pragma once

#include "translution/ops/runtime.h"

namespace translution {

/// While one lives, every op takes its portable path, on all threads: to compare with.
class PortableOnly {
 public:
  PortableOnly() : before_(runtime().implementation()) {
    runtime().set_implementation(Implementation::portable);
  }
  ~PortableOnly() { runtime().set_implementation(before_); }
  PortableOnly(const PortableOnly&) = delete;
  PortableOnly& operator=(const PortableOnly&) = delete;

 private:
  const Implementation before_;
};

}  // namespace translution
