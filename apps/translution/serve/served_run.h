#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models.h"
#include "translution/train/trained.h"

namespace translution::serve {

/// A run whose newest checkpoint is loaded. Not thread-safe: used by one thread at a time.
class ServedRun {
 public:
  /// Loads the run. A run directory without a checkpoint yet is accepted: facts().problem says so.
  ServedRun(const std::string& path, std::optional<Precision> precision, const std::string& device);

  const RunFacts& facts() const { return facts_; }
  const std::optional<Trained>& trained() const { return trained_; }
  /// Loads the newest checkpoint if it is another one than before; returns whether it did. What
  /// goes wrong becomes the problem of a run that has no model, and is ignored for one that has.
  bool refresh();
  /// Drops the model; the message becomes the problem of the run.
  void reject(const std::string& problem);

  /// Probabilities [classes] of each picture. Calls `between` before each block; it may throw.
  std::vector<std::vector<float>> predict(const std::vector<RgbImage>& pictures,
                                          const std::function<void()>& between = {});
  AttentionMaps attend(const RgbImage& picture, int64_t query);
  std::vector<ReportNorms> norms();

 private:
  void load();
  torch::Tensor input(const std::vector<RgbImage>& pictures);

  const std::string path_, device_;
  const std::optional<Precision> precision_;
  RunFacts facts_;
  std::optional<Trained> trained_;
  std::string newest_;  // target of the link `checkpoints/last` when it was loaded
};

}  // namespace translution::serve
