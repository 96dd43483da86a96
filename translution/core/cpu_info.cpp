#include "translution/core/cpu_info.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>

namespace translution {

using namespace detail;

namespace {

#if defined(__x86_64__)
struct CpuidLeaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros for a leaf above the highest one: the processor would return the data of another leaf.
CpuidLeaf read_leaf(uint32_t leaf, uint32_t subleaf) {
  CpuidLeaf values;
  __get_cpuid_count(leaf, subleaf, &values.eax, &values.ebx, &values.ecx, &values.edx);
  return values;
}

uint64_t read_xcr0() {
  constexpr uint32_t kHasXgetbv = 1u << 27;
  if (!(read_leaf(1, 0).ecx & kHasXgetbv)) return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool request_tiles() {
#ifdef SYS_arch_prctl
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

constexpr uint64_t kTilesEnabled = 3u << 17;

bool has_bf16_tiles(const TileInfo& info) {
  constexpr uint32_t kFeatures = 1u << 22 | 1u << 24;
  return (info.features & kFeatures) == kFeatures &&
         (info.enabled & kTilesEnabled) == kTilesEnabled;
}

}  // namespace

CpuInfo read_cpu_info() {
  CpuInfo info;
#if defined(__x86_64__)
  info.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  info.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  info.more_features = read_leaf(7, 1).eax;
  info.tiles = read_tile_info();
  if (has_bf16_tiles(info.tiles)) {
    static const bool granted = request_tiles();
    info.tiles_granted = granted;
  }
#endif
  return info;
}

std::vector<Isa> supported_isas(const CpuInfo& info) {
  constexpr uint32_t kAvx512Bf16 = 1u << 5;
  const bool supported[] = {info.avx2, info.avx512, (info.more_features & kAvx512Bf16) != 0,
                            has_bf16_tiles(info.tiles) && info.tiles_granted};
  std::vector<Isa> isas{Isa::scalar};
  for (const bool is_supported : supported) {
    if (!is_supported) break;
    isas.push_back(static_cast<Isa>(isas.size()));
  }
  return isas;
}

std::vector<Isa> available_isas() { return supported_isas(read_cpu_info()); }

Isa chosen_isa() {
  static const Isa chosen = [] {
    const auto available = available_isas();
    const char* requested = std::getenv("TRANSLUTION_ISA");
    if (requested == nullptr || *requested == '\0') return available.back();
    const Isa isa = parse_name("TRANSLUTION_ISA", kIsas, requested);
    require(std::count(available.begin(), available.end(), isa) == 1, "TRANSLUTION_ISA=", requested,
            ": this processor has at most ", name_of(kIsas, available.back()));
    return isa;
  }();
  return chosen;
}

TileInfo read_tile_info() {
  TileInfo info;
#if defined(__x86_64__)
  const auto palette = read_leaf(0x1D, 1);
  info.features = read_leaf(7, 0).edx;
  info.palettes = read_leaf(0x1D, 0).eax;
  info.tiles = palette.ebx;
  info.rows = palette.ecx;
  info.enabled = read_xcr0();
#endif
  return info;
}

Amx amx_support(const TileInfo& info) {
  constexpr uint32_t kFeatures = 1u << 22 | 1u << 24 | 1u << 25;
  if (!(info.features & kFeatures)) return Amx::absent;
  if ((info.enabled & kTilesEnabled) != kTilesEnabled) return Amx::disabled;
  const uint32_t count = info.tiles >> 16, row_bytes = info.tiles & 0xFFFF;
  const uint32_t rows = info.rows & 0xFFFF;
  return info.palettes > 0 && count > 0 && row_bytes > 0 && rows > 0 ? Amx::usable : Amx::hidden;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace translution
