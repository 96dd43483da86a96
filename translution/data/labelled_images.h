#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/idx.h"

namespace translution {

/// Grey images of one size, each with its class.
struct TRANSLUTION_API LabelledImages {
  torch::Tensor pixels;  ///< uint8 [n,rows,cols]
  torch::Tensor labels;  ///< int64 [n]

  int64_t size() const { return pixels.size(0); }
  std::vector<int64_t> classes() const;  ///< the labels as plain numbers
};

/// `count` digits of all classes, drawn by the program itself on all threads. Digit i is a function
/// of (seed, i) alone, so a smaller set is the beginning of a larger one.
TRANSLUTION_API LabelledImages make_digits(int64_t count, uint64_t seed);

/// The halves of a data set kept as IDX files, by the beginning of their names.
enum class IdxPart { train, t10k };

/// Reads a part from `directory`, as MNIST and Fashion-MNIST are kept there:
/// `train-images-idx3-ubyte` or `train-images.idx3-ubyte`, either also with `.gz`, and the labels
/// likewise. A missing file: the message says how to get MNIST.
TRANSLUTION_API LabelledImages read_idx(const std::string& directory, IdxPart part);

/// Images and labels together: as many of one as of the other, labels 0 to 9.
TRANSLUTION_API LabelledImages join_idx(IdxArray images, const std::string& images_name,
                                        const IdxArray& labels, const std::string& labels_name);

}  // namespace translution
