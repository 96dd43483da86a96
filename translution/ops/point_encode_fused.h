#pragma once

#include <ATen/core/Tensor.h>

namespace translution {

/// The CPU kernels behind point_encode. x, table and d are contiguous; x and d are float, double or
/// bfloat16, the results float or double. `tokens` and `first` are checked.
at::Tensor encode_fused(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                        const at::Tensor& first);
at::Tensor encode_input_gradient(const at::Tensor& d, const at::Tensor& table,
                                 const at::Tensor& tokens, const at::Tensor& first,
                                 int64_t tokens_in_all);
at::Tensor encode_table_gradient(const at::Tensor& d, const at::Tensor& x, const at::Tensor& tokens,
                                 const at::Tensor& first);

}  // namespace translution
