#pragma once

#include "translution/core/export.h"
#include "translution/models/options.h"

namespace translution {

/// What a model takes, derived from its options without allocating anything.
struct ModelCost {
  int64_t parameters;
  double forward_flops;     ///< per sample: matrix products, attention and convolution; 2 per
                            ///< multiply-add. Norms, softmax and GELU are left out.
  double training_flops;    ///< per sample: forward and twice as much for backward
  double weight_bytes;      ///< float32
  double packed_bytes;      ///< in bf16, copies of matrices as products read them in training: both
                            ///< orientations, padded to tiles; 0 in float32
  double evaluation_bytes;  ///< weights, in bf16 with matrices in bfloat16 alone, and what the
                            ///< widest layer works on without gradients
  double training_bytes;    ///< weights, packed copies, gradients, AdamW's two moments,
                            ///< activations, and the next three
  double kept_bytes;        ///< what layers keep in their workspace
  double work_bytes;        ///< what the widest layer works on in backward, and what large tensors
                            ///< take to fill their last pages
  double accumulator_bytes;  ///< the sums that a layer's matrices per offset are added in; one
                             ///< layer after the other uses the same
};

/// `batch` is the number of samples of the training step.
TRANSLUTION_API ModelCost model_cost(const ModelOptions& options, int64_t batch = 1);

/// FLOPs per sample of one layer's forward, counted as in ModelCost: tables, matrices, score and
/// value sums, and the output projection.
TRANSLUTION_API double attention_flops(const AttentionOptions& options);

/// Every parameter of the model in the order and with the names of `named_parameters()`.
TRANSLUTION_API std::vector<ParameterSpec> model_parameters(const ModelOptions& options);

}  // namespace translution
