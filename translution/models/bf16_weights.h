#pragma once

#include <functional>

#include "translution/core/export.h"
#include "translution/models/options.h"
#include "translution/nn/regrid.h"

namespace translution {

/// With Precision::bf16, products round every weight that they read. A model that is not trained
/// can therefore hold these weights in bfloat16 only, at 2 bytes each, and compute the same
/// numbers; only products of few rows are summed in another order. This applies to the matrices and
/// tables of attention and the weights of linear layers. Embeddings, vectors per slot, biases and
/// norms stay float32.
///
/// Returns a function that converts each tensor as soon as it is read (load_safetensors), so that
/// the float32 tensors of a file are never all in memory at once.
TRANSLUTION_API std::function<at::Tensor(const std::string& name, const at::Tensor& tensor)>
hold_in_bf16(const ModelOptions& options);

/// Converts the parameters of a model in memory, one at a time.
TRANSLUTION_API void hold_in_bf16(torch::nn::Module& module, const ModelOptions& options);

/// Makes the tensors the parameters of the module, without copying them and with their own types.
/// Throws on missing, unknown or ill-fitting tensors before anything is changed.
TRANSLUTION_API void adopt_tensors(torch::nn::Module& module, const NamedTensors& tensors);

}  // namespace translution
