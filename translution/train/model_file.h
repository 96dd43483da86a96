#pragma once

#include <string>

#include "translution/core/export.h"
#include "translution/io/safetensors.h"
#include "translution/weights/baselines.h"

namespace translution {

/// How the weights of a model are held that is used and not trained: as they are in float32, and
/// matrices in bfloat16 in bf16 (models/bf16_weights.h). Then a file is not refused by its size, so
/// this refuses a model that is too large.
TRANSLUTION_API TensorConversion weights_held_for(const ModelOptions& options);

/// Only the tensors of a model: from a run, a checkpoint, a directory of checkpoints, or a
/// safetensors file, which is not compared with a manifest.
TRANSLUTION_API NamedTensors load_model(const std::string& path);

/// Weights in one safetensors file whose metadata are the model's settings.
TRANSLUTION_API void save_described(const std::string& path, const ConvertedModel& model);

/// The model of such a file, of a run, or of a checkpoint. Refuses a file that does not say which
/// model it holds; `advice` ends that message.
TRANSLUTION_API ConvertedModel load_described(const std::string& path, const char* advice,
                                              Precision precision = Precision::float32);

}  // namespace translution
