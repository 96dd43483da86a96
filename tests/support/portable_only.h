#pragma once

#include "translution/ops/runtime.h"

namespace translution {

/// While this object exists, every op uses its portable path, on all threads.
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
