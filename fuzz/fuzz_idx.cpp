// Any bytes as an IDX file may only cause a std::runtime_error.
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "translution/data/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    translution::parse_idx({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const std::runtime_error&) {
  }
  return 0;
}
