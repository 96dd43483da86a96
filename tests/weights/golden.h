#pragma once

#include <map>
#include <string>
#include <vector>

#include "translution/models/network.h"
#include "translution/weights/authors.h"

namespace translution::testing {

/// A module of the authors' code with its recorded output and gradients, in double.
struct Golden {
  std::string name, family, kind;
  std::map<std::string, std::string> options;
  NamedTensors state, gradients;  ///< by their names
  at::Tensor input, output, grad_output;
  at::Tensor grad_input;  ///< undefined if the input is tokens
};

/// Every case in tests/golden, by name.
std::vector<std::string> golden_names();
Golden load_golden(const std::string& name);

/// Our module for one of theirs; load() sets its weights.
class Ours {
 public:
  explicit Ours(const AuthorsModule& module);

  void load(const NamedTensors& tensors);
  at::Tensor forward(const at::Tensor& input);
  NamedTensors weights() const;
  NamedTensors gradients() const;
  torch::nn::Module& module() const;

 private:
  torch::nn::LayerNorm norm_{nullptr};  // set for a layer
  Attention attention_{nullptr};
  std::shared_ptr<torch::nn::Module> layer_;
  std::shared_ptr<Network> network_;  // set for a model
};

/// Largest difference relative to the largest value of `expected`.
double relative_error(const at::Tensor& got, const at::Tensor& expected);

}  // namespace translution::testing
