#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"

namespace translution {

/// Instruction sets that the kernels are compiled for, weakest first. Each includes the ones before
/// it. The last two multiply bfloat16 natively; their float row operations are those of avx512.
enum class Isa { scalar, avx2, avx512, avx512_bf16, amx };

inline constexpr Named<Isa> kIsas[] = {
    {Isa::scalar, "scalar", "any x86-64 or other processor"},
    {Isa::avx2, "avx2", "AVX2 and FMA"},
    {Isa::avx512, "avx512", "AVX-512 F, BW, DQ and VL"},
    {Isa::avx512_bf16, "avx512_bf16", "AVX-512 with dot products of bfloat16"},
    {Isa::amx, "amx", "AVX512_BF16, and AMX tiles of bfloat16"},
};

/// AMX (tile) support as reported by CPUID and XCR0. Leaves above the highest one read as zero.
struct TileInfo {
  uint32_t features = 0;  ///< leaf 7, EDX: AMX in bits 22 (bfloat16), 24 (tiles), 25 (int8)
  uint32_t palettes = 0;  ///< leaf 0x1D, EAX: highest tile palette that can be configured
  uint32_t tiles = 0;     ///< leaf 0x1D, 1, EBX: number of tiles and bytes per row
  uint32_t rows = 0;      ///< leaf 0x1D, 1, ECX: rows per tile
  uint64_t enabled = 0;   ///< XCR0: tile state is enabled by the system in bits 17 and 18
};

TRANSLUTION_API TileInfo read_tile_info();

/// The CPU features that decide which instruction sets are supported.
struct CpuInfo {
  bool avx2 = false;           ///< AVX2 and FMA, enabled by the operating system
  bool avx512 = false;         ///< the same for AVX-512 F, BW, DQ and VL
  uint32_t more_features = 0;  ///< leaf 7, 1, EAX: AVX512_BF16 in bit 5
  TileInfo tiles;
  bool tiles_granted = false;  ///< this process may use tiles
};

/// Reads the features of this CPU. If it has bfloat16 tiles, requests permission to use them from
/// the operating system, once: Linux grants tiles to a process on request.
TRANSLUTION_API CpuInfo read_cpu_info();

/// The instruction sets that `info` supports, weakest first; the first is always scalar. amx does
/// not require leaf 0x1D: tiles configured by hand work even if the leaf is hidden.
TRANSLUTION_API std::vector<Isa> supported_isas(const CpuInfo& info);

/// The instruction sets that this machine supports, weakest first.
TRANSLUTION_API std::vector<Isa> available_isas();

/// The instruction set to use: the one that TRANSLUTION_ISA names, or the strongest available one.
/// Decided once, at the first call. Throws if the name is unknown or this processor lacks the set.
TRANSLUTION_API Isa chosen_isa();

/// Whether oneDNN can use tiles.
enum class Amx {
  absent,    ///< the processor has none
  disabled,  ///< the operating system does not enable them
  hidden,    ///< leaf 7 reports tiles, leaf 0x1D has no palette, as on Firecracker
  usable,
};

TRANSLUTION_API Amx amx_support(const TileInfo& info);

/// Number of logical CPUs that this process may run on.
TRANSLUTION_API int usable_cores();

}  // namespace translution
