#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models.h"
#include "translution/train/trained.h"

namespace translution::serve {

/// The first images of a run's test set, without a canvas around them.
class Samples {
 public:
  /// Opens the data of the run. If they are not there, problem() says why.
  explicit Samples(const Trained& trained);

  const std::string& problem() const { return problem_; }
  /// As Models::sample. Throws Refusal if there is none.
  Sample get(int64_t index, const std::optional<std::string>& label) const;

 private:
  void open(const Trained& trained);

  std::string problem_;
  std::vector<std::string> classes_;
  std::vector<int64_t> labels_;
  std::shared_ptr<const Dataset> dataset_;
  int64_t channels_ = 1;
  torch::Tensor black_, white_;  // values of a channel of an input [channels,1,1]
};

}  // namespace translution::serve
