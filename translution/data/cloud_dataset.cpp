#include "translution/data/cloud_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

Batch CloudDataset::load(const BatchPlan& plan) const {
  std::vector<CloudSample> samples;
  int64_t N = 0;
  for (const int64_t sample : plan.samples) {
    require(0 <= sample && sample < size(), "points: expected samples from 0 to ", size() - 1,
            ", got ", sample);
    samples.push_back(read(plan.epoch, sample));
    N = std::max(N, samples.back().cloud.size());
  }
  require(!samples.empty(), "points: expected at least one sample");
  const int64_t B = static_cast<int64_t>(samples.size());
  const int64_t channels = samples[0].cloud.channels, axes = samples[0].cloud.axes;
  auto target = torch::empty({B}, torch::kDouble);
  Batch batch{torch::zeros({B, N, channels}),
              {},
              torch::zeros({B, N, axes}),
              torch::zeros({B, N}, torch::kBool)};
  for (int64_t b = 0; b < B; ++b) {
    const auto& cloud = samples[b].cloud;
    std::copy(cloud.features.begin(), cloud.features.end(),
              batch.input.data_ptr<float>() + b * N * channels);
    std::copy(cloud.positions.begin(), cloud.positions.end(),
              batch.positions.data_ptr<float>() + b * N * axes);
    std::fill_n(batch.mask.data_ptr<bool>() + b * N, cloud.size(), true);
    target.data_ptr<double>()[b] = samples[b].target;
  }
  batch.target = target.to(targets_are_classes() ? torch::kLong : torch::kFloat);
  return batch;
}

}  // namespace translution
