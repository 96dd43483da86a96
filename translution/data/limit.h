#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "translution/data/dataset.h"
#include "translution/data/labelled_images.h"

namespace translution {

/// Selects `count` samples, spread evenly over the classes as far as each class has samples;
/// returns them in ascending order. The seed decides which samples, and which classes get one more.
/// A larger count includes the samples of a smaller one.
std::vector<int64_t> even_sample(const std::vector<int64_t>& labels, int64_t count, uint64_t seed);

/// Held-out samples and the remaining ones, both in ascending order.
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

/// At most `count` samples of a set; 0: all. If the set is sorted by class (the samples of each
/// class are contiguous), an even_sample; otherwise the first samples.
std::shared_ptr<const Dataset> take_samples(std::shared_ptr<const Dataset> dataset, int64_t count,
                                            uint64_t seed);
LabelledImages take_samples(const LabelledImages& images, int64_t count, uint64_t seed);

}  // namespace translution
