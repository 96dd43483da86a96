#pragma once

#include <functional>
#include <string>

#include "tests/support/cases.h"

namespace translution::testing {

using Function = std::function<at::Tensor(const Inputs&)>;

/// Compares autograd with central differences of fourth order, along one random direction for each
/// input. Returns how many directions were compared.
int expect_directional_gradients(const Function& function, const Inputs& inputs,
                                 const std::string& name);

/// The same, element by element. Returns how many elements were compared.
int64_t expect_elementwise_gradients(const Function& function, const Inputs& inputs,
                                     const std::string& name);

}  // namespace translution::testing
