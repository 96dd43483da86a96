#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <string>
#include <utility>

#include "translution/ops/autograd.h"
#include "translution/ops/compat.h"

namespace translution {

/// A function object that calls a registered op through the dispatcher. Use a static variable:
///   static const Op<Forward> forward("translution::attention");
template <typename Signature>
class Op;
template <typename Result, typename... Arguments>
class Op<Result(Arguments...)> {
 public:
  explicit Op(const char* name)
      : handle_(c10::Dispatcher::singleton()
                    .findSchemaOrThrow(name, "")
                    .typed<Result(Arguments...)>()) {}
  [[gnu::always_inline]] Result operator()(Arguments... arguments) const {
    return handle_.call(std::forward<Arguments>(arguments)...);
  }

 private:
  c10::TypedOperatorHandle<Result(Arguments...)> handle_;
};

/// An uninitialised contiguous tensor of the same shape and type, for Meta implementations.
inline at::Tensor empty_of(const at::Tensor& x) {
  return at::empty_symint(x.sym_sizes(), x.options());
}

/// The implementations of an op. All have the signature of the schema.
template <typename Function>
struct Implementations {
  Function* portable;  ///< plain LibTorch calls: any device, any type
  Function* cpu;       ///< the fused kernels; null: the CPU uses the portable implementation
  Function* meta;      ///< shapes only
  Function* autograd;  ///< null for a backward op, which then refuses second derivatives
};

/// Defines the op of a schema and registers its implementations.
template <typename Function>
void register_op(torch::Library& library, const char* schema,
                 const Implementations<Function>& implementations) {
  const std::string text = schema, op = text.substr(0, text.find('('));
  const auto implement = [&](c10::DispatchKey key, torch::CppFunction&& function) {
    library.impl(op.c_str(), torch::dispatch(key, std::move(function)));
  };
  library.def(schema);
  implement(c10::DispatchKey::CompositeExplicitAutograd,
            torch::CppFunction(implementations.portable));
  if (implementations.cpu)
    implement(c10::DispatchKey::CPU, torch::CppFunction(implementations.cpu));
  implement(c10::DispatchKey::Meta, torch::CppFunction(implementations.meta));
  implement(c10::DispatchKey::Autograd,
            implementations.autograd
                ? torch::CppFunction(implementations.autograd)
                : torch::CppFunction::makeFromBoxedFunction<&refuse_second_derivative>());
}

}  // namespace translution
