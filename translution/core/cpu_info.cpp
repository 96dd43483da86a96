#include "translution/core/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace translution {

std::vector<Isa> available_isas() {
  std::vector<Isa> isas{Isa::scalar};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::avx2);
  if (isas.size() == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    isas.push_back(Isa::avx512);
#endif
  return isas;
}

Isa chosen_isa() {
  static const Isa chosen = [] {
    const auto available = available_isas();
    const char* wanted = std::getenv("TRANSLUTION_ISA");
    if (wanted == nullptr || *wanted == '\0') return available.back();
    const Isa isa = parse_name("TRANSLUTION_ISA", kIsas, wanted);
    require(std::count(available.begin(), available.end(), isa) == 1, "TRANSLUTION_ISA=", wanted,
            ": this processor has at most ", name_of(kIsas, available.back()));
    return isa;
  }();
  return chosen;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace translution
