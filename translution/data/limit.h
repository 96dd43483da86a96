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

/// At most `count` samples of a set; 0: all. Where the set is sorted by class, that is all samples
/// of a class stand together, an even sample over the classes; otherwise the first ones.
std::shared_ptr<const Dataset> take_samples(std::shared_ptr<const Dataset> dataset, int64_t count,
                                            uint64_t seed);
LabelledImages take_samples(const LabelledImages& images, int64_t count, uint64_t seed);

}  // namespace translution
