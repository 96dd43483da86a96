#pragma once

#include <string>

#include "translution/core/export.h"
#include "translution/models/options.h"
#include "translution/nn/regrid.h"

namespace translution {

/// A model of ours with weights converted from another format.
struct ConvertedModel {
  ModelOptions options;
  NamedTensors tensors;
};

/// Converts GPT-2 of any size, with Hugging Face's tensor names, into a GPT with self_attention: a
/// bias on q, k and v, the tanh form of GELU, one norm before the head. The head is a copy of the
/// token embedding. Sizes are read from the tensors; heads have 64 channels, as in every GPT-2.
/// Error messages begin with `source`.
TRANSLUTION_API ConvertedModel from_gpt2(const NamedTensors& tensors, const std::string& source);

/// Converts timm's vit_* and deit_* with a class token into a ViT with self_attention: no norms
/// around the patch embedding, a bias on q, k and v if the file has one, eps 1e-6. Throws on
/// variants that compute something else (registers, a distillation token, layer scale, …); the
/// message names the part that differs.
TRANSLUTION_API ConvertedModel from_timm(const NamedTensors& tensors, const std::string& source);

}  // namespace translution
