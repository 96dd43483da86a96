#pragma once

#include <functional>

#include "translution/core/export.h"
#include "translution/models/options.h"
#include "translution/nn/regrid.h"

namespace translution {

/// In Precision::bf16 products round every weight that they read. A model that is not trained can
/// hold these weights in bfloat16 alone, 2 bytes each, and computes the same numbers; only few rows
/// are summed in another order. They are the matrices and tables of attention and the weights of
/// linear layers. Embeddings, vectors per slot, biases and norms stay float32.
///
/// Returns what each tensor becomes as soon as it is read (load_safetensors), so that a file of
/// float32 never lies in memory as a whole.
TRANSLUTION_API std::function<at::Tensor(const std::string& name, const at::Tensor& tensor)>
hold_in_bf16(const ModelOptions& options);

/// The same for a model in memory, one parameter after the other.
TRANSLUTION_API void hold_in_bf16(torch::nn::Module& module, const ModelOptions& options);

/// Makes the tensors the parameters of the module: no copies, and their types instead of the
/// module's. Missing, unknown or ill-fitting tensors are refused before anything is changed.
TRANSLUTION_API void adopt_tensors(torch::nn::Module& module, const NamedTensors& tensors);

}  // namespace translution
