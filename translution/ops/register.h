#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <memory>
#include <string>
#include <utility>

#include "translution/ops/autograd.h"
#include "translution/ops/compat.h"
#include "translution/ops/plain_form.h"

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
  Function* autograd;  ///< null for a backward op
  Function* plain;     ///< for forward mode and second derivatives; null: both are refused
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
  const auto [portable, cpu, meta, autograd, plain] = implementations;
  implement(c10::DispatchKey::CompositeExplicitAutograd, torch::CppFunction(portable));
  if (cpu) implement(c10::DispatchKey::CPU, torch::CppFunction(cpu));
  implement(c10::DispatchKey::Meta, torch::CppFunction(meta));
  implement(c10::DispatchKey::Autograd,
            autograd ? torch::CppFunction(with_forward_mode(autograd, plain))
                     : torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BackwardKernel>(
                           plain ? c10::KernelFunction::makeFromUnboxedRuntimeFunction(plain)
                                 : c10::KernelFunction())));
}

}  // namespace translution
