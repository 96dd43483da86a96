#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace translution {

/// x [R,in] times each weight, plus its bias, as `project` has it, on the CPU. All are float or all
/// double, or x is bfloat16 and each of the others bfloat16 or float; results are then float.
std::vector<at::Tensor> project_fused(const at::Tensor& x, at::TensorList weights,
                                      at::TensorList biases, bool transposed);

/// The sum over the weights of d[w] times the weight transposed: the gradient of x, [R,in].
/// Undefined d[w] are left out.
at::Tensor project_input_gradient(const std::vector<at::Tensor>& d, at::TensorList weights,
                                  bool transposed);

/// a^T b for a [R,m] and b [R,n]: the gradient of a weight, [m,n].
at::Tensor project_weight_gradient(const at::Tensor& a, const at::Tensor& b);

}  // namespace translution
