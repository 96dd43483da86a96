#pragma once

#include "translution/core/cpu_info.h"
#include "translution/core/names.h"

namespace translution {

/// What was done about AMX where CPUID shows it but does not say how to configure its tiles
/// (Amx::hidden). oneDNN up to 3.12 uses it even so, and a product of bfloat16 ends in an illegal
/// instruction.
enum class OnednnLimit { not_needed, users_choice, set, ours_only, too_late };

inline constexpr Named<OnednnLimit> kOnednnLimits[] = {
    {OnednnLimit::not_needed, "not_needed", "AMX is absent, disabled or complete"},
    {OnednnLimit::users_choice, "users_choice", "an environment variable sets the limit"},
    {OnednnLimit::set, "set", "oneDNN uses at most AVX512_CORE_BF16, here and in LibTorch"},
    {OnednnLimit::ours_only, "ours_only",
     "the same, but LibTorch contains a oneDNN that only ONEDNN_MAX_CPU_ISA reaches"},
    {OnednnLimit::too_late, "too_late", "oneDNN made a product before it could be limited"},
};

/// "ONEDNN_MAX_CPU_ISA=AVX2", or the same with DNNL_MAX_CPU_ISA: what the user asks of oneDNN.
/// Empty if nothing is set.
std::string users_onednn_limit();

/// Limits oneDNN, ours and LibTorch's, where `info` says that its tiles are hidden. A user's own
/// choice, not empty, wins.
OnednnLimit limit_onednn(const TileInfo& info, const std::string& users_choice);

/// What limit_onednn() did on this machine when the library was loaded: before any product that
/// the library makes, and after those that LibTorch made earlier.
OnednnLimit onednn_limit();

}  // namespace translution
