#pragma once

#include <string>

#include "translution/ops/instruction_sets.h"

namespace translution::cli {

/// How matrices of bfloat16 are multiplied: "AMX tiles", or what is done instead and why.
std::string bf16_products(const InstructionSets& sets);

/// A few lines for people: which sets are used, and why one is not.
std::string describe(const InstructionSets& sets);

}  // namespace translution::cli
