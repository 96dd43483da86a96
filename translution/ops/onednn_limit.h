#pragma once

#include "translution/core/cpu_info.h"
#include "translution/core/names.h"

namespace translution {

/// How oneDNN was limited on a CPU whose CPUID shows AMX but not its tile configuration
/// (Amx::hidden). oneDNN up to 3.12 uses AMX there anyway, and a bfloat16 product ends in an
/// illegal instruction.
enum class OnednnLimit { not_needed, users_choice, set, ours_only, too_late };

inline constexpr Named<OnednnLimit> kOnednnLimits[] = {
    {OnednnLimit::not_needed, "not_needed", "AMX is absent, disabled or complete"},
    {OnednnLimit::users_choice, "users_choice", "an environment variable sets the limit"},
    {OnednnLimit::set, "set", "oneDNN uses at most AVX512_CORE_BF16, here and in LibTorch"},
    {OnednnLimit::ours_only, "ours_only",
     "the same, but only ONEDNN_MAX_CPU_ISA can limit LibTorch's own oneDNN"},
    {OnednnLimit::too_late, "too_late", "oneDNN ran a product before it could be limited"},
};

/// The user's limit for oneDNN, such as "ONEDNN_MAX_CPU_ISA=AVX2" (or DNNL_MAX_CPU_ISA). Empty if
/// neither variable is set.
std::string users_onednn_limit();

/// Limits our oneDNN and LibTorch's if `info` shows hidden tiles. Does nothing if `users_choice` is
/// not empty.
OnednnLimit limit_onednn(const TileInfo& info, const std::string& users_choice);

/// The result of limit_onednn() when the library was loaded. That is before any product of this
/// library, but LibTorch may have run products earlier.
OnednnLimit onednn_limit();

}  // namespace translution
