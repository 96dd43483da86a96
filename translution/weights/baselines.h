#pragma once

#include <string>

#include "translution/core/export.h"
#include "translution/models/options.h"
#include "translution/nn/regrid.h"

namespace translution {

/// A model of ours with weights that were another's.
struct ConvertedModel {
  ModelOptions options;
  NamedTensors tensors;
};

/// GPT-2 under the names of Hugging Face, any of its sizes, into a GPT with self_attention: a bias
/// on q, k and v, the tanh form of GELU, one norm before the head. The head is a copy of the token
/// embedding. Sizes are read off the tensors; heads have 64 channels, as in every GPT-2.
TRANSLUTION_API ConvertedModel from_gpt2(const NamedTensors& tensors, const std::string& source);

/// timm's vit_* (deit_* too) with a class token, into a ViT with self_attention: no norms around
/// the patch embedding, a bias on q, k and v where there is one, eps 1e-6. Refuses variants that
/// compute something else (registers, a distillation token, layer scale, …) and names what it is.
TRANSLUTION_API ConvertedModel from_timm(const NamedTensors& tensors, const std::string& source);

}  // namespace translution
