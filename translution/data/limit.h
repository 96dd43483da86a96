#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "translution/data/dataset.h"
#include "translution/data/labelled_images.h"

namespace translution {

/// `count` samples, in ascending order: as many of each class as of any other, as far as a class
/// has them. The seed decides which samples, and which classes have one more. A larger count has
/// the samples of a smaller one.
std::vector<int64_t> even_sample(const std::vector<int64_t>& labels, int64_t count, uint64_t seed);

/// The given samples of a set, and all others, both in ascending order.
struct SampleSplit {
  std::vector<int64_t> held_out, rest;
};

/// Holds out `count` samples, evenly over the classes. The split depends on the labels and the
/// count alone, so all runs on the same data hold out the same samples.
SampleSplit hold_out(const std::vector<int64_t>& labels, int64_t count);

/// The given samples of a set.
std::shared_ptr<const Dataset> select_samples(std::shared_ptr<const Dataset> dataset,
                                              std::vector<int64_t> samples);
LabelledImages select_samples(const LabelledImages& images, const std::vector<int64_t>& samples);

/// At most `count` samples of a set; 0: all. Where the set is sorted by class, that is all samples
/// of a class stand together, an even sample over the classes; otherwise the first ones.
std::shared_ptr<const Dataset> take_samples(std::shared_ptr<const Dataset> dataset, int64_t count,
                                            uint64_t seed);
LabelledImages take_samples(const LabelledImages& images, int64_t count, uint64_t seed);

}  // namespace translution
