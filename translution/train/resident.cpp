#include "translution/train/resident.h"

#include <unistd.h>

#include <fstream>

namespace translution {

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  if (!(file >> pages >> resident)) return 0;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace translution
