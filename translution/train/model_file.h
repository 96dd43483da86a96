#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/io/safetensors.h"
#include "translution/weights/baselines.h"

namespace translution {

/// The conversion of weights that are loaded for inference: none in float32; in bf16, matrices
/// become bfloat16 (models/bf16_weights.h). With a conversion, loading does not check the size of
/// the file against the memory, so in bf16 this throws if the model is too large.
TRANSLUTION_API TensorConversion weights_held_for(const ModelOptions& options);

/// Loads the tensors of a model from a run, a checkpoint, a directory of checkpoints, or a
/// safetensors file. A safetensors file is not checked against a manifest.
TRANSLUTION_API NamedTensors load_model(const std::string& path);

/// A stored model without its weights.
struct StoredModel {
  std::string path;  ///< of the file or the checkpoint
  ModelOptions options;
  std::vector<std::string> classes = {};  ///< empty: the file has no class names
  int64_t vocabulary = 0;                 ///< of the training text
  int64_t step = 0;
};

/// Describes the model of a run, a checkpoint or a file with a model's options.
TRANSLUTION_API StoredModel find_model(const std::string& path);

/// Ends the message about a file without the model's options.
inline constexpr const char* kDescribeAdvice = "`translution convert` writes a file with them";

/// Writes weights to a safetensors file with the model's options as metadata.
TRANSLUTION_API void save_described(const std::string& path, const ConvertedModel& model);

/// Loads the model of such a file, of a run, or of a checkpoint. Throws at a file without the
/// model's options; `advice` ends that message.
TRANSLUTION_API ConvertedModel load_described(const std::string& path,
                                              const char* advice = kDescribeAdvice,
                                              Precision precision = Precision::float32);

}  // namespace translution
