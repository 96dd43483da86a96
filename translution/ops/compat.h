#pragma once

// Differences between LibTorch 1.13 and 2.x are met here and nowhere else.

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/Optional.h>

namespace translution {

using OptionalTensor = c10::optional<at::Tensor>;
using OptionalTensorList = c10::List<OptionalTensor>;

/// An undefined tensor for "not given".
inline at::Tensor value_or_undefined(const OptionalTensor& tensor) {
  return tensor.has_value() ? *tensor : at::Tensor();
}

inline OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

}  // namespace translution
