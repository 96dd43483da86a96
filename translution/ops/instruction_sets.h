#pragma once

#include <string>
#include <vector>

#include "translution/core/cpu_info.h"
#include "translution/core/export.h"

namespace translution {

/// Which instruction sets this process uses, and what decides that.
struct InstructionSets {
  std::vector<Isa> available;      ///< weakest first
  Isa chosen = Isa::scalar;        ///< the most that our kernels use
  std::string onednn;              ///< the most that oneDNN uses; empty in a build without it
  Amx amx = Amx::absent;           ///< for oneDNN
  std::string users_onednn_limit;  ///< "ONEDNN_MAX_CPU_ISA=AVX2", or empty
};

TRANSLUTION_API InstructionSets instruction_sets();

}  // namespace translution
