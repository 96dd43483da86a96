#pragma once

#include <string>

#include "translution/ops/instruction_sets.h"

namespace translution::cli {

/// How bfloat16 matrices are multiplied: "AMX tiles", or the substitute and the reason for it.
std::string bf16_products(const InstructionSets& sets);

/// A few lines of text: the instruction sets in use, and the reason for each unused one.
std::string describe(const InstructionSets& sets);

}  // namespace translution::cli
