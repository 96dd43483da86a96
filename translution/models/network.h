#pragma once

#include "translution/core/export.h"
#include "translution/models/gpt.h"
#include "translution/models/vit.h"

namespace translution {

/// A ViT or a GPT.
class TRANSLUTION_API Network {
 public:
  /// Random numbers for weights, and below for dropout, come from `generator` (see seeded_generator
  /// in nn/generator.h), or from LibTorch's default generator if it is undefined.
  explicit Network(const ModelOptions& options, const at::Generator& generator = {},
                   const BlockBuilt& built = {});

  /// Images [B,channels,rows,cols] to logits [B,classes], or tokens [B,n] to logits
  /// [B,n,vocabulary]. The input may be on another device; the result is on the network's device.
  torch::Tensor forward(const torch::Tensor& input, const at::Generator& generator = {});
  /// The parts of forward around the backbone: the input of the first block [B,N,dim]; the query
  /// rows that the last block computes (undefined: all); the logits of the backbone's output.
  torch::Tensor embed(const torch::Tensor& input, const at::Generator& generator = {});
  torch::Tensor last_rows();
  torch::Tensor logits(const torch::Tensor& features);

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
  ViT vit_{nullptr};  // exactly one of the two is set
  GPT gpt_{nullptr};
};

}  // namespace translution
