#include "translution/train/usage.h"

#include <algorithm>
#include <fstream>

#include "translution/train/resident.h"

namespace translution {

Usage::Usage() : before_(now()) {}

// From or to a disk; a page in a mapped file counts as written when it is first changed.
Usage::Bytes Usage::now() {
  std::ifstream file("/proc/self/io");
  Bytes bytes;
  std::string name;
  for (double count = 0; file >> name >> count;) {
    if (name == "read_bytes:") bytes.read = count;
    if (name == "write_bytes:") bytes.written = count;
  }
  return bytes;
}

std::vector<std::pair<std::string, double>> Usage::take(double seconds) {
  constexpr double kMib = 1 << 20;
  const auto bytes = now();
  const auto steps = static_cast<double>(std::max<int64_t>(1, steps_));
  const Bytes before = before_;
  before_ = bytes;
  steps_ = 0;
  return {{"seconds_per_step", seconds / steps},
          {"read_mib_per_step", (bytes.read - before.read) / kMib / steps},
          {"written_mib_per_step", (bytes.written - before.written) / kMib / steps},
          {"peak_resident_mib", peak_resident_mib()}};
}

}  // namespace translution
