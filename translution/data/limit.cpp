#include "translution/data/limit.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "translution/core/error.h"
#include "translution/core/random.h"

namespace translution {

using namespace detail;

namespace {

constexpr uint64_t kOrderOfClasses = 0, kOrderInAClass = 1;  // keys of random numbers

// A subset of a data set.
class SubsetDataset : public Dataset {
 public:
  SubsetDataset(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> samples)
      : dataset_(std::move(dataset)), samples_(std::move(samples)) {}

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  Batch load(const BatchPlan& plan) const override {
    BatchPlan inner{plan.epoch, plan.index, {}, plan.shard};
    for (const int64_t sample : plan.samples) inner.samples.push_back(samples_.at(sample));
    return dataset_->load(inner);
  }
  std::vector<std::string> classes() const override { return dataset_->classes(); }
  std::vector<int64_t> labels() const override {
    const auto all = dataset_->labels();
    std::vector<int64_t> labels;
    if (all.empty()) return labels;
    for (const int64_t sample : samples_) labels.push_back(all.at(sample));
    return labels;
  }

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const std::vector<int64_t> samples_;
};

// Whether the samples of every class are contiguous.
bool sorted_by_class(const std::vector<int64_t>& labels) {
  std::map<int64_t, int64_t> ranges;
  for (size_t s = 0; s < labels.size(); ++s)
    if ((s == 0 || labels[s] != labels[s - 1]) && ++ranges[labels[s]] > 1) return false;
  return !labels.empty();
}

std::vector<int64_t> samples_taken(const std::vector<int64_t>& labels, int64_t count,
                                   uint64_t seed) {
  if (sorted_by_class(labels)) return even_sample(labels, count, seed);
  std::vector<int64_t> first(count);
  std::iota(first.begin(), first.end(), 0);
  return first;
}

}  // namespace

// In each round every class that has samples left contributes one, until there are `count`.
std::vector<int64_t> even_sample(const std::vector<int64_t>& labels, int64_t count, uint64_t seed) {
  std::map<int64_t, std::vector<int64_t>> classes;
  for (size_t s = 0; s < labels.size(); ++s) classes[labels[s]].push_back(static_cast<int64_t>(s));
  const auto order =
      permutation(static_cast<int64_t>(classes.size()), Random({seed, kOrderOfClasses}));
  std::vector<std::array<int64_t, 3>> turns;  // round, rank of the class in it, sample
  turns.reserve(labels.size());
  auto rank = order.begin();
  for (const auto& [label, samples] : classes) {
    const auto drawn = permutation(static_cast<int64_t>(samples.size()),
                                   Random({seed, kOrderInAClass, static_cast<uint64_t>(label)}));
    for (size_t round = 0; round < drawn.size(); ++round)
      turns.push_back({static_cast<int64_t>(round), *rank, samples[drawn[round]]});
    ++rank;
  }
  const auto end = turns.begin() + std::min<int64_t>(count, static_cast<int64_t>(turns.size()));
  std::partial_sort(turns.begin(), end, turns.end());
  std::vector<int64_t> chosen;
  for (auto turn = turns.begin(); turn != end; ++turn) chosen.push_back((*turn)[2]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

SampleSplit hold_out(const std::vector<int64_t>& labels, int64_t count) {
  constexpr uint64_t kSeed = 0;
  const auto size = static_cast<int64_t>(labels.size());
  require(count < size, "hold-out: expected fewer than the ", size, " training samples, got ",
          count);
  SampleSplit split{even_sample(labels, count, kSeed), {}};
  std::vector<int64_t> all(labels.size());
  std::iota(all.begin(), all.end(), 0);
  std::set_difference(all.begin(), all.end(), split.held_out.begin(), split.held_out.end(),
                      std::back_inserter(split.rest));
  return split;
}

std::shared_ptr<const Dataset> select_samples(std::shared_ptr<const Dataset> dataset,
                                              std::vector<int64_t> samples) {
  return std::make_shared<SubsetDataset>(std::move(dataset), std::move(samples));
}

LabelledImages select_samples(const LabelledImages& images, const std::vector<int64_t>& samples) {
  const auto index = torch::tensor(samples);
  return {images.pixels.index_select(0, index), images.labels.index_select(0, index)};
}

std::shared_ptr<const Dataset> take_samples(std::shared_ptr<const Dataset> dataset, int64_t count,
                                            uint64_t seed) {
  if (count == 0 || count >= dataset->size()) return dataset;
  auto samples = samples_taken(dataset->labels(), count, seed);
  return select_samples(std::move(dataset), std::move(samples));
}

LabelledImages take_samples(const LabelledImages& images, int64_t count, uint64_t seed) {
  if (count == 0 || count >= images.size()) return images;
  return select_samples(images, samples_taken(images.classes(), count, seed));
}

}  // namespace translution
