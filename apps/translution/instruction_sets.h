#pragma once

#include <string>
#include <vector>

#include "translution/ops/onednn_limit.h"

namespace translution::cli {

/// What decides which instruction sets are used.
struct InstructionSets {
  std::vector<Isa> available;      ///< weakest first
  Isa chosen = Isa::scalar;        ///< the most that our kernels use
  std::string onednn;              ///< the most that oneDNN uses; empty in a build without it
  Amx amx = Amx::absent;           ///< for oneDNN
  std::string users_onednn_limit;  ///< "ONEDNN_MAX_CPU_ISA=AVX2", or empty
};

InstructionSets instruction_sets();

/// How matrices of bfloat16 are multiplied: "AMX tiles", or what is done instead and why.
std::string bf16_products(const InstructionSets& sets);

/// A few lines for people: which sets are used, and why one is not.
std::string describe(const InstructionSets& sets);

}  // namespace translution::cli
