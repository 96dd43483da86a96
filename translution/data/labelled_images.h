#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/idx.h"

namespace translution {

/// Grey images of equal size and their classes.
struct TRANSLUTION_API LabelledImages {
  torch::Tensor pixels;  ///< uint8 [n,rows,cols]
  torch::Tensor labels;  ///< int64 [n]

  int64_t size() const { return pixels.size(0); }
  std::vector<int64_t> classes() const;  ///< the labels as plain numbers
};

/// Draws `count` digits of all ten classes, on all threads. Digit i depends only on (seed, i), so a
/// smaller set is a prefix of a larger one.
TRANSLUTION_API LabelledImages make_digits(int64_t count, uint64_t seed);

/// The training and test parts of a data set in IDX files, named as the files are.
enum class IdxPart { train, t10k };

/// Reads a part of a data set from `directory`, with the file names of MNIST and Fashion-MNIST:
/// `train-images-idx3-ubyte` or `train-images.idx3-ubyte`, optionally with `.gz`, and
/// `train-labels-idx1-ubyte` likewise. If a file is missing, the message says how to fetch MNIST.
TRANSLUTION_API LabelledImages read_idx(const std::string& directory, IdxPart part);

/// Combines images and labels. Throws std::runtime_error unless there is one label per image and
/// every label is 0 to 9.
TRANSLUTION_API LabelledImages join_idx(IdxArray images, const std::string& images_name,
                                        const IdxArray& labels, const std::string& labels_name);

}  // namespace translution
