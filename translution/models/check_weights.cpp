#include "translution/models/check_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <set>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/models/cost.h"

namespace translution {

using namespace detail;

namespace {

// The smallest or largest value if it is not finite, else 0.
double non_finite_value(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return 0;
  const bool narrow = tensor.element_size() < 4;  // aminmax has no kernel for 16 bits
  const auto [low, high] = at::aminmax(narrow ? tensor.to(at::kFloat) : tensor);
  for (const double value : {low.item<double>(), high.item<double>()})
    if (!std::isfinite(value)) return value;
  return 0;
}

}  // namespace

void require_finite(const NamedTensors& tensors, const std::string& where) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    const double value = non_finite_value(tensor);
    ensure(value == 0, where, ": tensor ", in_quotes(name), " holds ",
           std::isnan(value) ? "nan"
           : value < 0       ? "-inf"
                             : "inf",
           "; expected finite numbers: use an earlier checkpoint, or other weights");
  }
}

void require_shapes(const ModelOptions& model, const NamedTensors& tensors,
                    const std::string& where) {
  const auto size = [](at::IntArrayRef shape) { return join(shape); };
  std::set<std::string> known;
  for (const auto& spec : model_parameters(model)) {
    known.insert(spec.name);
    const auto found = tensors.find(spec.name);
    ensure(found != tensors.end(), where, ": has no tensor ", in_quotes(spec.name), ", expected ",
           size(spec.shape), " for ", model.name());
    ensure(found->second.sizes() == at::IntArrayRef(spec.shape), where, ": tensor ",
           in_quotes(spec.name), " is ", size(found->second.sizes()), ", expected ",
           size(spec.shape), " for ", model.name());
  }
  for (const auto& [name, tensor] : tensors)
    ensure(known.count(name) == 1, where, ": tensor ", in_quotes(name), " does not belong to ",
           model.name());
}

}  // namespace translution
