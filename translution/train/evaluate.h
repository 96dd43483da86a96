#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/dataset.h"
#include "translution/models/network.h"
#include "translution/train/options.h"

namespace translution {

/// The positions and mask of a batch of points; undefined for images and text.
inline Points points_of(const Batch& batch) { return {batch.positions, batch.mask}; }

struct LossOptions {
  double label_smoothing = 0;
  NumberLoss number = NumberLoss::squared;
};

/// The loss of a batch: cross-entropy, for targets that are classes, shares of classes or the next
/// tokens; that of numbers for output [B]. The target may be on another device.
TRANSLUTION_API torch::Tensor loss_of(const torch::Tensor& output, const torch::Tensor& target,
                                      const LossOptions& options = {});

/// How a data set states numbers: number = mean + scale * target.
struct TargetUnit {
  double mean = 0, scale = 1;
};

/// Results of a network on a data set.
struct TRANSLUTION_API Evaluation {
  int64_t count = 0;          ///< samples, or tokens of text
  double loss = 0;            ///< mean; of numbers the squared error, in standard deviations
  bool of_classes = false;    ///< the model predicts a class
  double top1 = 0, top5 = 0;  ///< classes: shares
  torch::Tensor predictions;  ///< classes: the likeliest class of each sample [n]
  bool of_numbers = false;    ///< the model predicts a number
  double mae = 0;             ///< numbers: mean absolute error, in the unit of the data

  double perplexity() const;
};

/// The batches `first`, `first + every`, … of a data set, loaded by `workers` threads.
struct EvaluationPart {
  int64_t batch = 1, workers = 0;
  TargetUnit unit = {};
  int64_t first = 0, every = 1;
};

/// Figures of a part of the batches: float64, a row per batch of the data set, with sums over its
/// samples, and zeros for batches outside the part. Appends predicted classes to `predictions`
/// unless it is null. `done` as for evaluate.
TRANSLUTION_API torch::Tensor evaluate_batches(Network& network,
                                               const std::shared_ptr<const Dataset>& dataset,
                                               const EvaluationPart& part,
                                               std::vector<torch::Tensor>* predictions = nullptr,
                                               const std::function<void(int64_t)>& done = {});
/// Figures without any batch: zeros.
TRANSLUTION_API torch::Tensor no_figures(const Dataset& dataset, int64_t batch);
/// The results from the figures of all batches.
TRANSLUTION_API Evaluation evaluation_of(const torch::Tensor& figures);

/// Evaluates every sample once, in order. Calls `done` after each batch with its number of samples.
/// `unit` is that of the numbers in the data set.
TRANSLUTION_API Evaluation evaluate(Network& network, const std::shared_ptr<const Dataset>& dataset,
                                    int64_t batch, int64_t workers,
                                    const std::function<void(int64_t)>& done = {},
                                    TargetUnit unit = {});

}  // namespace translution
