#pragma once

#include <functional>
#include <string>

#include "tests/support/cases.h"

namespace translution::testing {

using Function = std::function<at::Tensor(const Inputs&)>;

/// Compares autograd with fourth-order central differences along one random direction per input.
/// Returns the number of directions.
int expect_directional_gradients(const Function& function, const Inputs& inputs,
                                 const std::string& name);

/// The same for each element of each input. Returns the number of elements.
int64_t expect_elementwise_gradients(const Function& function, const Inputs& inputs,
                                     const std::string& name);

}  // namespace translution::testing
