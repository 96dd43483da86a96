#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "translution/core/export.h"

struct XXH3_state_s;

namespace translution {

/// Incremental 128-bit XXH3 hash. Detects damage; not cryptographic.
class TRANSLUTION_API Checksum {
 public:
  static constexpr size_t kDigits = 32;

  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::string_view bytes);
  std::string hex() const;  ///< 32 lower-case hexadecimal digits
  uint64_t bits() const;    ///< the lower 64 bits

 private:
  XXH3_state_s* state_;
};

TRANSLUTION_API std::string checksum_of(std::string_view bytes);
TRANSLUTION_API std::string checksum_of_file(const std::string& path);

}  // namespace translution
