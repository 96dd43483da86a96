#pragma once

#include <string>
#include <vector>

#include "translution/core/cpu_info.h"
#include "translution/core/export.h"

namespace translution {

/// The instruction sets that this process uses, and why.
struct InstructionSets {
  std::vector<Isa> available;      ///< weakest first
  Isa chosen = Isa::scalar;        ///< highest that our kernels use
  std::string onednn;              ///< highest that oneDNN uses; empty in a build without oneDNN
  Amx amx = Amx::absent;           ///< AMX support for oneDNN
  std::string users_onednn_limit;  ///< "ONEDNN_MAX_CPU_ISA=AVX2", or empty
};

TRANSLUTION_API InstructionSets instruction_sets();

}  // namespace translution
