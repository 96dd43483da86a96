#pragma once

#include <cstdint>
#include <string>

#include "translution/core/export.h"
#include "translution/models/cost.h"
#include "translution/models/options.h"

namespace translution {

/// Throws if `bytes` is more than the memory that this process may use. The message has `what`,
/// both figures and `advice`.
TRANSLUTION_API void require_memory(double bytes, const std::string& what,
                                    const std::string& advice);

/// The same for a training step that takes `samples` at a time.
TRANSLUTION_API void require_memory_to_train(const ModelOptions& model, int64_t samples,
                                             const std::string& advice,
                                             const SharedTraining& shared = {});

/// The same for a training step with weights and moments in files (`--offload`), whose layers
/// compute `part` samples at a time.
TRANSLUTION_API void require_memory_to_offload(const ModelOptions& model, int64_t samples,
                                               int64_t part, const std::string& advice);

/// The same for a forward pass with a batch of `samples`.
TRANSLUTION_API void require_memory_to_evaluate(const ModelOptions& model, int64_t samples,
                                                const std::string& advice);

}  // namespace translution
