#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/names.h"

namespace translution {

/// Instruction sets for which row operations are compiled, weakest first.
enum class Isa { scalar, avx2, avx512 };

inline constexpr Named<Isa> kIsas[] = {
    {Isa::scalar, "scalar", "any x86-64 or other processor"},
    {Isa::avx2, "avx2", "AVX2 and FMA"},
    {Isa::avx512, "avx512", "AVX-512 F, BW, DQ and VL"},
};

/// What this processor has, weakest first; always begins with scalar.
std::vector<Isa> available_isas();

/// The strongest available one, or the one that TRANSLUTION_ISA names. A name that is unknown or
/// that this processor lacks is refused. Asked once, at the first use.
Isa chosen_isa();

/// What CPUID and XCR0 say about AMX, the instructions on tiles. A leaf above the highest is zero.
struct TileInfo {
  uint32_t features = 0;  ///< leaf 7, EDX: AMX in bits 22 (bfloat16), 24 (tiles), 25 (int8)
  uint32_t palettes = 0;  ///< leaf 0x1D, EAX: the last layout of tiles that can be configured
  uint32_t tiles = 0;     ///< leaf 0x1D, 1, EBX: number of tiles, and bytes of a row
  uint32_t rows = 0;      ///< leaf 0x1D, 1, ECX: rows of a tile
  uint64_t enabled = 0;   ///< XCR0: the system keeps tiles in bits 17 and 18
};

TileInfo read_tile_info();

/// Whether tiles can be used.
enum class Amx {
  absent,    ///< the processor has none
  disabled,  ///< the operating system does not keep them
  hidden,    ///< leaf 7 has them, leaf 0x1D does not say how to configure them; Firecracker does so
  usable,
};

Amx amx_support(const TileInfo& info);

/// How many processors this process may run on.
int usable_cores();

}  // namespace translution
