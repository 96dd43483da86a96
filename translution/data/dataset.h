#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/batch_order.h"

namespace translution {

/// Images and their classes, windows of text and the next token at each position, or clouds of
/// points and their classes or numbers. Clouds are padded with zeros to the largest of the batch.
struct Batch {
  torch::Tensor input;   ///< float [B,channels,rows,cols], int64 tokens [B,n], or features [B,N,C]
  torch::Tensor target;  ///< int64 [B] or [B,n]; float [B,classes] if images are mixed; float [B]
                         ///< if numbers are predicted
  torch::Tensor positions{};  ///< float [B,N,axes] of points; undefined for images and text
  torch::Tensor mask{};       ///< bool [B,N], true for a point; undefined for images and text
};

class TRANSLUTION_API Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// May be called from several threads at once.
  virtual Batch load(const BatchPlan& plan) const = 0;
  /// Names of the classes; empty for text.
  virtual std::vector<std::string> classes() const { return {}; }
  /// The class of each sample; empty for text.
  virtual std::vector<int64_t> labels() const { return {}; }
};

}  // namespace translution
