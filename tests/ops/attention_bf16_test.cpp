// The core op in bfloat16: compares the fused kernels with the portable path, which defines the
// roundings.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/portable_only.h"
#include "tests/support/terms.h"

namespace translution::testing {
namespace {

struct Bf16Run {
  at::Tensor out;
  Inputs grads;
};

Bf16Run run_bf16(const TermsConfig& config) {
  TermsCase c(config);
  c.call().precision = Precision::bf16;
  if (c.call().keep.defined()) c.call().keep = c.call().keep.to(at::kFloat);
  Inputs inputs;
  for (const auto& [name, tensor] : c.inputs())
    inputs[name] = tensor.to(at::kFloat).requires_grad_();
  Bf16Run result;
  result.out = c.run(inputs);
  auto random = generator("weight");
  (result.out * normal(result.out.sizes(), random).to(at::kFloat)).sum().backward();
  for (const auto& [name, tensor] : inputs) result.grads[name] = tensor.grad();
  return result;
}

// A weight or gradient halfway between two bfloat16 numbers may be rounded to either.
constexpr double kOneRounding = 1.0 / 256;

TEST(Bf16Attention, MatchesThePortablePathForEveryCombinationOfTerms) {
  for (const TermsConfig& config : all_terms()) {
    SCOPED_TRACE(config.str());
    const auto fused = run_bf16(config);
    const PortableOnly portable_only;
    const auto portable = run_bf16(config);
    // The portable path rounds queries before it multiplies them by vectors; the kernels do not.
    const bool vectors = config.k == Side::vectors || config.v == Side::vectors;
    const double allowed = (vectors ? 3 : 1) * kOneRounding;
    EXPECT_LE(error(fused.out, portable.out), allowed);
    for (const auto& [name, grad] : portable.grads) {
      ASSERT_EQ(grad.defined(), fused.grads.at(name).defined()) << name;
      if (!grad.defined()) continue;
      // Weights, their gradient and the gradient of the output are rounded on the way.
      EXPECT_LE(error(fused.grads.at(name), grad), 3 * allowed) << name;
    }
  }
}

}  // namespace
}  // namespace translution::testing
