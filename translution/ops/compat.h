#pragma once

// All code that depends on the LibTorch version (1.13 or 2.x) is in this header.

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/Optional.h>

namespace translution {

using OptionalTensor = c10::optional<at::Tensor>;
using OptionalTensorList = c10::List<OptionalTensor>;

/// Returns an undefined tensor if there is no value.
inline at::Tensor value_or_undefined(const OptionalTensor& tensor) {
  return tensor.has_value() ? *tensor : at::Tensor();
}

inline OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

}  // namespace translution
