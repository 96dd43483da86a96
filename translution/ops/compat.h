#pragma once

// All code that depends on the LibTorch version (1.13 or 2.x) is in this header.

#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/version.h>

#include <memory>
#include <type_traits>
#include <utility>

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

/// The type that torch.autocast("cpu", …) chooses.
inline at::ScalarType autocast_type() {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  return at::autocast::get_autocast_dtype(at::kCPU);
#else
  return at::autocast::get_autocast_cpu_dtype();
#endif
}

/// A pointer to a node of autograd's graph: std::shared_ptr; c10::intrusive_ptr in newer versions.
using NodePointer = decltype(torch::autograd::Edge::function);
constexpr bool kSharedNodes = std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>;

template <typename Node, typename... Arguments>
NodePointer make_node(Arguments&&... arguments) {
  if constexpr (kSharedNodes)
    return NodePointer(new Node(std::forward<Arguments>(arguments)...),
                       [](Node* node) { deleteNode(node); });  // without deep recursion
  else
    return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
}

template <typename Node>
NodePointer pointer_to(Node* node) {
  if constexpr (kSharedNodes)
    return node->shared_from_this();
  else
    return node->getptr();
}

/// Newer versions serve a TCPStore with libuv by default. Some builds lack it.
template <typename StoreOptions, typename = void>
constexpr bool kMayUseLibuv = false;
template <typename StoreOptions>
constexpr bool kMayUseLibuv<StoreOptions, std::void_t<decltype(StoreOptions::useLibUV)>> = true;

template <typename StoreOptions>
void serve_without_libuv(StoreOptions& options) {
  if constexpr (kMayUseLibuv<StoreOptions>) options.useLibUV = false;
}

}  // namespace translution
