#pragma once

#include <functional>
#include <memory>
#include <vector>

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
  bool of_images = false;     ///< else of text
  double top1 = 0, top5 = 0;  ///< images: shares
  torch::Tensor predictions;  ///< images: the likeliest class of each sample [n]

  double perplexity() const;
};

/// Figures of the batches `first`, `first + every`, … of a data set: float64 [batches,5] with the
/// sums of count, images, loss, top1 and top5 of each, and zeros for all other batches. Appends the
/// predictions of images to `predictions` unless it is null. `done` as for evaluate.
TRANSLUTION_API torch::Tensor evaluate_batches(Network& network,
                                               const std::shared_ptr<const Dataset>& dataset,
                                               int64_t batch, int64_t workers, int64_t first,
                                               int64_t every,
                                               std::vector<torch::Tensor>* predictions = nullptr,
                                               const std::function<void(int64_t)>& done = {});
/// Figures without any batch: zeros.
TRANSLUTION_API torch::Tensor no_figures(const Dataset& dataset, int64_t batch);
/// The results from the figures of all batches.
TRANSLUTION_API Evaluation evaluation_of(const torch::Tensor& figures);

/// Evaluates every sample once, in order. Calls `done` after each batch with its number of samples.
TRANSLUTION_API Evaluation evaluate(Network& network, const std::shared_ptr<const Dataset>& dataset,
                                    int64_t batch, int64_t workers,
                                    const std::function<void(int64_t)>& done = {});

}  // namespace translution
