#pragma once

// All code that depends on the LibTorch version (1.13 or 2.x) is in this header.

#include <ATen/core/Generator.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
#include <optional>
#else
#include <c10/util/Optional.h>
#endif

namespace translution {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
template <typename T>
using Optional = std::optional<T>;
#else
template <typename T>
using Optional = c10::optional<T>;
#endif
using OptionalTensor = Optional<at::Tensor>;
using OptionalTensorList = c10::List<OptionalTensor>;

/// Returns an undefined tensor if there is no value.
inline at::Tensor value_or_undefined(const OptionalTensor& tensor) {
  return tensor.has_value() ? *tensor : at::Tensor();
}

inline OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

/// No value if the generator is undefined: LibTorch 2 refuses an undefined one for meta tensors.
inline Optional<at::Generator> optional(const at::Generator& generator) {
  return generator.defined() ? Optional<at::Generator>(generator) : Optional<at::Generator>();
}

}  // namespace translution
