#include "translution/core/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace translution {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Reads a control group's limit, which is a number or "max".
int64_t limit_in(const std::string& path) {
  std::ifstream file(path);
  int64_t bytes = 0;
  return file >> bytes ? bytes : kNoLimit;
}

// The lowest limit of `group` and its ancestors.
int64_t least_limit(const std::string& root, std::string group, const std::string& file) {
  int64_t least = limit_in(root + "/" + file);
  for (; group.size() > 1; group.resize(group.rfind('/')))
    least = std::min(least, limit_in(root + group + "/" + file));
  return least;
}

// Each line of the file is "number:controllers:/group"; cgroup version 2 has no controllers.
int64_t control_group_limit() {
  int64_t least = kNoLimit;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line[second + 1] != '/') continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const auto group = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, least_limit("/sys/fs/cgroup", group, "memory.max"));
    else if (controllers == "memory")
      least = std::min(least, least_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

int64_t resource_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  const bool known = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known && limit.rlim_cur < static_cast<rlim_t>(kNoLimit)
             ? static_cast<int64_t>(limit.rlim_cur)
             : kNoLimit;
}

}  // namespace

int64_t usable_bytes() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min(
      {machine, control_group_limit(), resource_limit(RLIMIT_AS), resource_limit(RLIMIT_DATA)});
}

}  // namespace translution
