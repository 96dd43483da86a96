#pragma once

#include <map>
#include <string>

#include "translution/core/export.h"
#include "translution/models/cloud.h"
#include "translution/models/gpt.h"
#include "translution/models/vit.h"

namespace translution {

/// A ViT, a GPT or a Cloud.
class TRANSLUTION_API Network {
 public:
  /// Random numbers for weights, and below for dropout, come from `generator` (see seeded_generator
  /// in nn/generator.h), or from LibTorch's default generator if it is undefined.
  explicit Network(const ModelOptions& options, const at::Generator& generator = {},
                   const BlockBuilt& built = {});

  /// Images [B,channels,rows,cols] to logits [B,classes], or tokens [B,n] to logits
  /// [B,n,vocabulary], or features of points [B,N,channels] to logits or numbers (Cloud). The input
  /// may be on another device; the result is on the network's device.
  torch::Tensor forward(const torch::Tensor& input, const at::Generator& generator = {},
                        const Points& points = {});
  /// The parts of forward around the backbone, for images and text: the input of the first block
  /// [B,N,dim]; the query rows that the last block computes (undefined: all); the logits of the
  /// backbone's output.
  torch::Tensor embed(const torch::Tensor& input, const at::Generator& generator = {});
  torch::Tensor last_rows();
  torch::Tensor logits(const torch::Tensor& features);

  /// Moves the parameters.
  void to(torch::Device device);
  torch::Device device();

  /// The parameters that options().share splits, by name; empty if this process has all slots.
  std::map<std::string, TableRows> table_rows();

  torch::nn::Module& module();
  Backbone& backbone();
  const ModelOptions& options() const { return options_; }
  ViT& vit() { return vit_; }
  GPT& gpt() { return gpt_; }
  Cloud& cloud() { return cloud_; }

 private:
  ModelOptions options_;
  ViT vit_{nullptr};  // exactly one of them is set
  GPT gpt_{nullptr};
  Cloud cloud_{nullptr};
};

}  // namespace translution
