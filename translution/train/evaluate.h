#pragma once

#include <functional>
#include <memory>

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
  double top1 = 0, top5 = 0;  ///< classes: shares
  torch::Tensor predictions;  ///< classes: the likeliest class of each sample [n]
  bool of_numbers = false;    ///< the model predicts a number
  double mae = 0;             ///< numbers: mean absolute error, in the unit of the data

  double perplexity() const;
};

/// Evaluates every sample once, in order. Calls `done` after each batch with its number of samples.
/// `unit` is that of the numbers in the data set.
TRANSLUTION_API Evaluation evaluate(Network& network, const std::shared_ptr<const Dataset>& dataset,
                                    int64_t batch, int64_t workers,
                                    const std::function<void(int64_t)>& done = {},
                                    TargetUnit unit = {});

}  // namespace translution
