#include "translution/models/bf16_weights.h"

#include <set>

#include "translution/core/error.h"
#include "translution/models/cost.h"
#include "translution/ops/rounding.h"

namespace translution {

using namespace detail;

std::function<at::Tensor(const std::string&, const at::Tensor&)> hold_in_bf16(
    const ModelOptions& options) {
  std::set<std::string> names;
  for (const auto& spec : model_parameters(options))
    if (spec.is_multiplied()) names.insert(spec.name);
  return [names](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.is_floating_point()) return tensor;  // rejected later, with its name
    return names.count(name) == 1 ? to_bf16(tensor) : tensor.to(at::kFloat);
  };
}

void hold_in_bf16(torch::nn::Module& module, const ModelOptions& options) {
  const auto convert = hold_in_bf16(options);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.named_parameters())
    parameter.value().set_data(convert(parameter.key(), parameter.value().detach()));
}

void adopt_tensors(torch::nn::Module& module, const NamedTensors& tensors) {
  const auto parameters = module.named_parameters();
  for (const auto& parameter : parameters) {
    const auto found = tensors.find(parameter.key());
    require(found != tensors.end() && found->second.defined(), "load: ", parameter.key(), " ",
            join(parameter.value().sizes()), " is missing; expected tensors of the same model");
    require(found->second.is_floating_point() && !found->second.is_meta() &&
                found->second.sizes() == parameter.value().sizes(),
            "load: ", parameter.key(), ": expected floating-point numbers ",
            join(parameter.value().sizes()), ", got ", found->second.scalar_type(), " ",
            join(found->second.sizes()));
  }
  for (const auto& [name, tensor] : tensors)
    require(parameters.contains(name), "load: the model has no parameter '", name, "'",
            name_hint(name, parameters.keys()));
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : parameters) parameter.value().set_data(tensors.at(parameter.key()));
}

}  // namespace translution
