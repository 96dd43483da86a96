#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace translution {

/// `project` for x [R,in] on the CPU. All tensors are float, or all are double, or x is bfloat16
/// and each of the others bfloat16 or float; the results are then float.
std::vector<at::Tensor> project_fused(const at::Tensor& x, at::TensorList weights,
                                      at::TensorList biases, bool transposed);

/// The gradient of x, [R,in]: the sum over w of d[w] times the transpose of weight w. Skips
/// undefined d[w].
at::Tensor project_input_gradient(const std::vector<at::Tensor>& d, at::TensorList weights,
                                  bool transposed);

/// a^T b for a [R,m] and b [R,n]: the gradient of a weight, [m,n].
at::Tensor project_weight_gradient(const at::Tensor& a, const at::Tensor& b);

}  // namespace translution
