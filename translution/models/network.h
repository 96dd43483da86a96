#pragma once

#include "translution/core/export.h"
#include "translution/models/gpt.h"
#include "translution/models/vit.h"

namespace translution {

/// A model of either family.
class TRANSLUTION_API Network {
 public:
  /// Weights come from `generator`, or from the process's where it is undefined; so does dropout
  /// below. seeded_generator (nn/generator.h) makes one.
  explicit Network(const ModelOptions& options, const at::Generator& generator = {});

  /// Images [B,channels,rows,cols] to classes [B,classes], or tokens [B,n] to [B,n,vocabulary].
  /// The input may lie on another device; the result lies on the network's.
  torch::Tensor forward(const torch::Tensor& input, const at::Generator& generator = {});

  /// Moves the parameters.
  void to(torch::Device device);
  torch::Device device();

  torch::nn::Module& module();
  Backbone& backbone();
  const ModelOptions& options() const { return options_; }
  ViT& vit() { return vit_; }
  GPT& gpt() { return gpt_; }

 private:
  ModelOptions options_;
  ViT vit_{nullptr};  // one of the two is there
  GPT gpt_{nullptr};
};

}  // namespace translution
