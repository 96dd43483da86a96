#pragma once

#include "translution/core/export.h"
#include "translution/models/options.h"

namespace translution {

/// The cost of a model, derived from its options without allocating anything.
struct ModelCost {
  int64_t parameters;
  double forward_flops;     ///< per sample: matrix products, attention and convolution; 2 per
                            ///< multiply-add. Norms, softmax and GELU are not counted.
  double training_flops;    ///< per sample: 3 * forward_flops (backward takes twice the forward)
  double weight_bytes;      ///< float32
  double packed_bytes;      ///< with bf16, packed copies of matrices for products in training: both
                            ///< orientations, padded to tiles; 0 with float32
  double evaluation_bytes;  ///< weights (with bf16, matrices in bfloat16 only) and the activations
                            ///< of the widest layer
  double training_bytes;    ///< weights, packed copies, gradients, AdamW's two moments,
                            ///< activations, and the next three
  double kept_bytes;        ///< encoded queries and keys that layers save for backward
  double work_bytes;        ///< temporaries of the widest layer in backward, and the padding of
                            ///< large tensors to whole pages
  double accumulator_bytes;  ///< accumulators of products with a matrix per offset, for the layer
                             ///< that needs most; all layers use the same memory
};

/// `batch` is the number of samples of the training step.
TRANSLUTION_API ModelCost model_cost(const ModelOptions& options, int64_t batch = 1);

/// How processes share the training of a model.
struct SharedTraining {
  int64_t shards = 1;  ///< of a batch, in each process
  int64_t processes = 1;
  int64_t on_this_machine = 1;  ///< processes
};

/// Bytes that a process needs beyond `training_bytes`: a set of gradients for each level of the
/// tree that adds those of its shards, and two buffers of 16 MiB for exchanges with others.
TRANSLUTION_API double sharing_bytes(const ModelCost& cost, const SharedTraining& shared);
/// Memory of a training step whose weights and moments are in files (train/offload.h) and whose
/// layers compute `part` of the `batch` samples at a time: the inputs of all blocks; activations,
/// gradients and the resident part of the files for one layer. Or of an evaluation with `batch`
/// samples, if that is more.
TRANSLUTION_API double offload_bytes(const ModelOptions& options, int64_t batch, int64_t part);

/// The tables with a matrix per slot, which ranks divide if each owns some of the slots. Nothing
/// between points.
struct TableSizes {
  int64_t slots = 0;       ///< of a table; 0: no tables
  int64_t parameters = 0;  ///< of all tables
};

TRANSLUTION_API TableSizes table_sizes(const ModelOptions& options);

/// The query rows of a layer and the pairs of its attention map. The last layer of a ViT with a
/// class token has one query row.
struct LayerPairs {
  double queries, pairs;
};

TRANSLUTION_API LayerPairs layer_pairs(const ModelOptions& options, int64_t layer);

/// FLOPs per sample of one attention layer's forward, counted as in ModelCost: tables, matrices,
/// score and value sums, and the output projection.
TRANSLUTION_API double attention_flops(const AttentionOptions& options);

/// Every parameter of the model in the order and with the names of `named_parameters()`.
TRANSLUTION_API std::vector<ParameterSpec> model_parameters(const ModelOptions& options);

}  // namespace translution
