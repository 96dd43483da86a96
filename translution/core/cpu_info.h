#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"

namespace translution {

/// Instruction sets for which kernels are compiled, weakest first. Each includes those before it.
/// The last two multiply bfloat16; their row operations are those of avx512.
enum class Isa { scalar, avx2, avx512, avx512_bf16, amx };

inline constexpr Named<Isa> kIsas[] = {
    {Isa::scalar, "scalar", "any x86-64 or other processor"},
    {Isa::avx2, "avx2", "AVX2 and FMA"},
    {Isa::avx512, "avx512", "AVX-512 F, BW, DQ and VL"},
    {Isa::avx512_bf16, "avx512_bf16", "AVX-512 with dot products of bfloat16"},
    {Isa::amx, "amx", "AVX512_BF16, and AMX tiles of bfloat16"},
};

/// What CPUID and XCR0 say about AMX, the instructions on tiles. A leaf above the highest is zero.
struct TileInfo {
  uint32_t features = 0;  ///< leaf 7, EDX: AMX in bits 22 (bfloat16), 24 (tiles), 25 (int8)
  uint32_t palettes = 0;  ///< leaf 0x1D, EAX: the last layout of tiles that can be configured
  uint32_t tiles = 0;     ///< leaf 0x1D, 1, EBX: number of tiles, and bytes of a row
  uint32_t rows = 0;      ///< leaf 0x1D, 1, ECX: rows of a tile
  uint64_t enabled = 0;   ///< XCR0: the system keeps tiles in bits 17 and 18
};

TRANSLUTION_API TileInfo read_tile_info();

/// What decides which instruction sets can be used.
struct CpuInfo {
  bool avx2 = false;           ///< AVX2 and FMA, enabled by the operating system
  bool avx512 = false;         ///< the same for AVX-512 F, BW, DQ and VL
  uint32_t more_features = 0;  ///< leaf 7, 1, EAX: AVX512_BF16 in bit 5
  TileInfo tiles;
  bool tiles_granted = false;  ///< this process may use tiles
};

/// Asks the operating system for tiles if the processor has those of bfloat16: Linux grants them to
/// a process on request. Asks once.
TRANSLUTION_API CpuInfo read_cpu_info();

/// The instruction sets that follow from it, weakest first; always begins with scalar. For amx,
/// leaf 0x1D does not count: tiles that are configured by hand work where it is hidden.
TRANSLUTION_API std::vector<Isa> supported_isas(const CpuInfo& info);

/// What this machine supports.
TRANSLUTION_API std::vector<Isa> available_isas();

/// The strongest available one, or the one that TRANSLUTION_ISA names. A name that is unknown or
/// that this processor lacks is refused. Asked once, at the first use.
TRANSLUTION_API Isa chosen_isa();

/// Whether oneDNN can use tiles.
enum class Amx {
  absent,    ///< the processor has none
  disabled,  ///< the operating system does not keep them
  hidden,    ///< leaf 7 has them, leaf 0x1D does not say how to configure them; Firecracker does so
  usable,
};

TRANSLUTION_API Amx amx_support(const TileInfo& info);

/// How many processors this process may run on.
TRANSLUTION_API int usable_cores();

}  // namespace translution
