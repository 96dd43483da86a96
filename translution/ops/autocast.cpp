// torch.autocast("cpu", torch.bfloat16): products take bfloat16 features and round the float32
// weights themselves; norms and the loss stay float32. Other types of autocast change nothing, nor
// does float64, as in LibTorch.

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

#include "translution/ops/attention_impl.h"
#include "translution/ops/compat.h"

namespace translution {
namespace {

// Terms of `attention` that hold features of tokens. The others are weights.
constexpr size_t kFeatureTerms[] = {kQ, kK, kV, kRelQ, kRelK, kRelV};

bool is_double(const at::Tensor& x) { return x.scalar_type() == at::kDouble; }

// Converts a tensor, or the feature terms of a list; returns false if there is a double.
bool lower(c10::IValue& features) {
  if (features.isTensor()) {
    if (is_double(features.toTensor())) return false;
    features = features.toTensor().to(at::kBFloat16);
    return true;
  }
  auto terms = features.to<OptionalTensorList>().copy();
  for (const size_t t : kFeatureTerms) {
    const auto term = t < terms.size() ? value_or_undefined(terms.get(t)) : at::Tensor();
    if (!term.defined()) continue;
    if (is_double(term)) return false;
    terms.set(t, term.to(at::kBFloat16));
  }
  features = terms;
  return true;
}

// An op whose first argument are features, and that has an argument `precision`.
void multiply_bf16(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  const auto& schema = op.schema();
  c10::IValue* const arguments = &(*stack)[stack->size() - schema.arguments().size()];
  if (autocast_type() == at::kBFloat16 && lower(arguments[0]))
    arguments[*schema.argumentIndexWithName("precision")] = name_of(kPrecisions, Precision::bf16);
  op.callBoxed(stack);
}

// The same for an op that takes float32 features and rounds them itself: what it does beside its
// products stays float32.
void round_inside(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  const auto& schema = op.schema();
  c10::IValue* const arguments = &(*stack)[stack->size() - schema.arguments().size()];
  if (autocast_type() == at::kBFloat16 && !is_double(arguments[0].toTensor())) {
    arguments[0] = arguments[0].toTensor().to(at::kFloat);
    arguments[*schema.argumentIndexWithName("precision")] = name_of(kPrecisions, Precision::bf16);
  }
  op.callBoxed(stack);
}

// An op that computes in float32.
void compute_float32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  c10::IValue* const end = stack->data() + stack->size();
  for (auto* argument = end - op.schema().arguments().size(); argument != end; ++argument)
    if (autocast_type() == at::kBFloat16 && argument->isTensor() &&
        argument->toTensor().scalar_type() == at::kBFloat16)
      *argument = argument->toTensor().to(at::kFloat);
  op.callBoxed(stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(translution, AutocastCPU, m) {
  for (const char* op : {"project", "attention", "convolution", "translution", "alpha_translution",
                         "self_attention", "attention_layer"})
    m.impl(op, torch::CppFunction::makeFromBoxedFunction<&multiply_bf16>());
  m.impl("point_attention", torch::CppFunction::makeFromBoxedFunction<&round_inside>());
  for (const char* op : {"layer_norm", "cross_entropy"})
    m.impl(op, torch::CppFunction::makeFromBoxedFunction<&compute_float32>());
}

}  // namespace translution
