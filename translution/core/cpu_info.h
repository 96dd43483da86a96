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

/// How many processors this process may run on.
int usable_cores();

}  // namespace translution
