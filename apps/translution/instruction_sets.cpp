#include "instruction_sets.h"

#include <fmt/format.h>

#include <algorithm>

#include "translution/kernels/gemm.h"
#include "translution/kernels/onednn.h"

namespace translution::cli {
namespace {

constexpr const char* kMissing = "the processor does not have it";

bool uses_amx(const InstructionSets& sets) { return sets.onednn.find("amx") != std::string::npos; }

std::string why_no_amx(const InstructionSets& sets) {
  if (sets.amx == Amx::absent) return kMissing;
  if (sets.amx == Amx::disabled) return "the operating system does not enable it";
  if (!sets.users_onednn_limit.empty()) return sets.users_onednn_limit;
  if (sets.amx == Amx::hidden)
    return "CPUID shows it but hides leaf 0x1D, so its tiles cannot be configured";
  return sets.onednn.empty() ? "this build has no oneDNN" : "oneDNN does not use it";
}

std::vector<std::string> unused(const InstructionSets& sets) {
  std::vector<std::string> lines;
  for (const auto& isa : kIsas) {
    if (isa.value <= sets.chosen) continue;
    const bool has = std::count(sets.available.begin(), sets.available.end(), isa.value) > 0;
    lines.push_back(fmt::format(
        "{} ({})", isa.name,
        has ? fmt::format("TRANSLUTION_ISA={}", name_of(kIsas, sets.chosen)) : kMissing));
  }
  if (!uses_amx(sets)) lines.push_back(fmt::format("amx ({})", why_no_amx(sets)));
  return lines;
}

}  // namespace

InstructionSets instruction_sets() {
  return {available_isas(), chosen_isa(), kernels::onednn_isa(), amx_support(read_tile_info()),
          users_onednn_limit()};
}

std::string describe(const InstructionSets& sets) {
  std::string text = fmt::format("row operations: {}\nmatrix products: {}{}\n",
                                 name_of(kIsas, sets.chosen), kernels::gemm_libraries(),
                                 sets.onednn.empty() ? "" : ", oneDNN up to " + sets.onednn);
  for (const auto& line : unused(sets)) text += "not used: " + line + "\n";
  if (uses_amx(sets) && sets.amx == Amx::hidden)
    text +=
        "warning: CPUID hides the tiles of amx (leaf 0x1D), and products of bfloat16 end in an "
        "illegal instruction; unset " +
        sets.users_onednn_limit + "\n";
  return text;
}

}  // namespace translution::cli
