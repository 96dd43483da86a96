#pragma once

#include <vector>

#include "translution/core/export.h"
#include "translution/models/options.h"

namespace translution {

/// How ranks share the training of a model. `offset` ranks with consecutive numbers are an offset
/// group: each owns some slots of every table with a matrix per slot, with gradients and moments,
/// and all take the same samples. `data` such groups share a batch. Ranks that own the same slots
/// are a data group.
struct Split {
  int64_t data = 1, offset = 1;

  int64_t ranks() const { return data * offset; }
};

/// The machines of a training.
struct Cluster {
  int64_t machines = 1;
  int64_t ranks_per_machine = 1;  ///< a power of two
  double bandwidth = 1.25e9;      ///< bytes per second that a machine sends while it receives
  double flops = 1e11;            ///< per second of a machine, in matrix products
  double memory = 64e9;           ///< bytes of a machine

  int64_t ranks() const { return machines * ranks_per_machine; }
};

/// A training step.
struct StepSize {
  int64_t batch = 1;  ///< samples of all ranks
  int64_t parts = 1;  ///< that each rank splits its samples into, to save memory
};

/// What a split costs a rank in a step. docs/scaling.md has the formulas.
struct SplitCost {
  Split split;
  double data_bytes = 0;       ///< sent for the sums of gradients over the data group
  double offset_bytes = 0;     ///< sent for the sums of activations over the offset group
  double product_seconds = 0;  ///< at the machine's rate of matrix products
  double travel_seconds = 0;   ///< of what leaves a machine; latency is not counted
  double memory_bytes = 0;
  bool fits = false;  ///< all ranks of a machine together

  /// Nothing travels while a rank computes.
  double step_seconds() const { return product_seconds + travel_seconds; }
};

/// Numbers per sample that an offset group sums in a layer.
struct LayerSums {
  double scores = 0;    ///< relative scores, for softmax
  double outputs = 0;   ///< sums of relative values, or a convolution's output
  double weights = 0;   ///< in backward: gradients of the attention map, or their row sums if the
                        ///< layer has no shared scores
  double features = 0;  ///< in backward: gradients of the features that tables multiply

  double all() const { return scores + outputs + weights + features; }
};

TRANSLUTION_API LayerSums layer_sums(const ModelOptions& options, int64_t layer);

/// Bytes that each of `ranks` ranks sends to sum so many bytes (World::tree_sum).
TRANSLUTION_API double sum_bytes(int64_t ranks, double bytes);

/// Throws if the ranks of the split are not those of the cluster.
TRANSLUTION_API SplitCost split_cost(const ModelOptions& options, const StepSize& step,
                                     const Cluster& cluster, const Split& split);

/// The costs of all splits whose offset groups have 1, 2, 4, … ranks, each rank with samples and
/// slots. Throws if there is none.
TRANSLUTION_API std::vector<SplitCost> split_costs(const ModelOptions& options,
                                                   const StepSize& step, const Cluster& cluster);

/// The fastest split that fits; nullptr if none does.
TRANSLUTION_API const SplitCost* recommended(const std::vector<SplitCost>& costs);

}  // namespace translution
