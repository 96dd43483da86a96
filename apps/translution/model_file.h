#pragma once

#include <string>

#include "translution/weights/baselines.h"

namespace translution::cli {

/// Weights in one safetensors file whose metadata are the model's settings.
void save_described(const std::string& path, const ConvertedModel& model);

/// The model of such a file, of a run, or of a checkpoint. Refuses a file that does not say which
/// model it holds; `advice` ends that message.
ConvertedModel load_described(const std::string& path, const char* advice);

}  // namespace translution::cli
