#include "instruction_sets.h"

#include <fmt/format.h>

#include <algorithm>

#include "translution/ops/products.h"

namespace translution::cli {
namespace {

constexpr const char* kMissing = "the processor does not have it";

bool uses_amx(const InstructionSets& sets) { return sets.onednn.find("amx") != std::string::npos; }

std::string why_missing(const InstructionSets& sets, Isa isa) {
  if (isa != Isa::amx || sets.amx == Amx::absent) return kMissing;
  if (sets.amx == Amx::disabled) return "the operating system does not enable it";
  return sets.available.back() == Isa::avx512_bf16 ? "the operating system does not grant it"
                                                   : "it needs avx512_bf16";
}

std::string why_onednn_has_no_amx(const InstructionSets& sets) {
  if (!sets.users_onednn_limit.empty()) return sets.users_onednn_limit;
  return sets.amx == Amx::hidden
             ? "CPUID hides leaf 0x1D, which oneDNN needs to configure the tiles"
             : "this version does not use it";
}

std::vector<std::string> unused(const InstructionSets& sets) {
  std::vector<std::string> lines;
  for (const auto& isa : kIsas) {
    if (isa.value <= sets.chosen) continue;
    const bool has = std::count(sets.available.begin(), sets.available.end(), isa.value) > 0;
    lines.push_back(fmt::format("not used: {} ({})", isa.name,
                                has ? fmt::format("TRANSLUTION_ISA={}", name_of(kIsas, sets.chosen))
                                    : why_missing(sets, isa.value)));
  }
  const bool has_tiles = sets.amx == Amx::hidden || sets.amx == Amx::usable;
  if (has_tiles && !sets.onednn.empty() && !uses_amx(sets))
    lines.push_back(fmt::format("not used by oneDNN: amx ({})", why_onednn_has_no_amx(sets)));
  return lines;
}

}  // namespace

std::string bf16_products(const InstructionSets& sets) {
  if (sets.chosen == Isa::amx) return "AMX tiles";
  if (sets.chosen == Isa::avx512_bf16) return "AVX512_BF16";
  return fmt::format("rounded operands, multiplied in float32 ({})",
                     sets.available.back() < Isa::avx512_bf16
                         ? "this processor has no bfloat16 instructions"
                         : fmt::format("TRANSLUTION_ISA={}", name_of(kIsas, sets.chosen)));
}

std::string describe(const InstructionSets& sets) {
  std::string text =
      fmt::format("row operations: {}\nmatrix products: {}{}\nbfloat16 products: {}\n",
                  name_of(kIsas, std::min(sets.chosen, Isa::avx512)), product_libraries(),
                  sets.onednn.empty() ? "" : ", oneDNN up to " + sets.onednn, bf16_products(sets));
  for (const auto& line : unused(sets)) text += line + "\n";
  if (uses_amx(sets) && sets.amx == Amx::hidden)
    text +=
        "warning: CPUID hides the tiles of amx (leaf 0x1D), and products of bfloat16 in oneDNN end "
        "in an illegal instruction; unset " +
        sets.users_onednn_limit + "\n";
  return text;
}

}  // namespace translution::cli
