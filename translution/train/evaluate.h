#pragma once

#include <functional>
#include <memory>

#include "translution/core/export.h"
#include "translution/data/dataset.h"
#include "translution/models/network.h"

namespace translution {

/// The loss of a batch: cross-entropy, for targets that are classes, shares of classes or the next
/// tokens. The target may be on another device.
TRANSLUTION_API torch::Tensor loss_of(const torch::Tensor& logits, const torch::Tensor& target,
                                      double label_smoothing = 0);

/// Results of a network on a data set.
struct TRANSLUTION_API Evaluation {
  int64_t count = 0;          ///< images, or tokens
  double loss = 0;            ///< mean
  double top1 = 0, top5 = 0;  ///< images: shares
  torch::Tensor predictions;  ///< images: the likeliest class of each sample [n]

  double perplexity() const;
};

/// Evaluates every sample once, in order. Calls `done` after each batch with its number of samples.
TRANSLUTION_API Evaluation evaluate(Network& network, const std::shared_ptr<const Dataset>& dataset,
                                    int64_t batch, int64_t workers,
                                    const std::function<void(int64_t)>& done = {});

}  // namespace translution
