#pragma once

#include <cstdint>
#include <string>

#include "translution/core/export.h"
#include "translution/models/options.h"

namespace translution {

/// Refuses work that takes more memory than this process may: one line with `what` was asked, both
/// figures and what to lower.
TRANSLUTION_API void require_memory(double bytes, const std::string& what,
                                    const std::string& advice);

/// The same for a step of training with so many samples at a time.
TRANSLUTION_API void require_memory_to_train(const ModelOptions& model, int64_t samples,
                                             const std::string& advice);

/// The same for a forward pass.
TRANSLUTION_API void require_memory_to_evaluate(const ModelOptions& model, int64_t samples,
                                                const std::string& advice);

}  // namespace translution
