#include "tests/weights/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "translution/io/safetensors.h"

namespace translution::testing {

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TRANSLUTION_GOLDEN))
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

Golden load_golden(const std::string& name) {
  auto file = load_safetensors(TRANSLUTION_GOLDEN "/" + name + ".safetensors");
  Golden golden;
  golden.name = name;
  for (const auto& [key, text] : file.metadata) golden.options[key] = text;
  golden.family = golden.options.at("family");
  golden.kind = golden.options.at("kind");
  golden.options.erase("family");
  golden.options.erase("kind");
  for (const auto& [key, tensor] : file.tensors) {
    if (key.rfind("state.", 0) == 0) golden.state[key.substr(6)] = tensor;
    if (key.rfind("grad.", 0) == 0) golden.gradients[key.substr(5)] = tensor;
  }
  golden.input = file.tensors.at("input");
  golden.output = file.tensors.at("output");
  golden.grad_output = file.tensors.at("grad_output");
  if (golden.input.is_floating_point()) golden.grad_input = file.tensors.at("grad_input");
  return golden;
}

Ours::Ours(const AuthorsModule& module) {
  if (module.kind != AuthorsModule::Kind::layer) {
    network_ = std::make_shared<Network>(module.model);
    return;
  }
  layer_ = std::make_shared<torch::nn::Module>();
  norm_ = layer_->register_module("norm", make_norm(module.layer.dim(), 1e-5));
  attention_ = layer_->register_module("attention", Attention(module.layer));
}

torch::nn::Module& Ours::module() const { return network_ ? network_->module() : *layer_; }

void Ours::load(const NamedTensors& tensors) {
  module().to(tensors.begin()->second.scalar_type());
  torch::NoGradGuard no_grad;
  auto parameters = module().named_parameters();
  ASSERT_EQ(parameters.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_NE(parameters.find(name), nullptr) << name;
    ASSERT_EQ(parameters[name].sizes(), tensor.sizes()) << name;
    parameters[name].copy_(tensor);
  }
}

at::Tensor Ours::forward(const at::Tensor& input) {
  return network_ ? network_->forward(input) : attention_(norm_(input));
}

NamedTensors Ours::weights() const {
  NamedTensors tensors;
  for (const auto& item : module().named_parameters())
    tensors[item.key()] = item.value().detach().clone();
  return tensors;
}

NamedTensors Ours::gradients() const {
  NamedTensors tensors;
  for (const auto& item : module().named_parameters()) {
    const auto gradient = item.value().grad();
    tensors[item.key()] = gradient.defined() ? gradient : torch::zeros_like(item.value());
  }
  return tensors;
}

double relative_error(const at::Tensor& got, const at::Tensor& reference) {
  const auto expected = reference.to(at::kDouble);
  const double scale = expected.abs().max().item<double>();
  const double difference = (got.to(at::kDouble) - expected).abs().max().item<double>();
  return scale > 0 ? difference / scale : difference;
}

}  // namespace translution::testing
