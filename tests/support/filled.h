#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cmath>
#include <string>

namespace translution::testing {

/// A 64-bit key of a name (FNV-1a).
inline uint64_t key_of(const std::string& name) {
  uint64_t key = 0xCBF29CE484222325;
  for (const char letter : name) key = (key ^ static_cast<uint8_t>(letter)) * 0x100000001B3;
  return key;
}

/// Pseudo-random doubles in [-bound, bound) that depend only on `name` and their index, not on
/// LibTorch's generator.
inline at::Tensor filled(const std::string& name, at::IntArrayRef shape, double bound) {
  auto tensor = torch::empty(shape, torch::kDouble);
  auto* const numbers = tensor.data_ptr<double>();
  uint64_t state = key_of(name);
  for (int64_t n = 0; n < tensor.numel(); ++n) {
    uint64_t x = state += 0x9E3779B97F4A7C15;  // SplitMix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    numbers[n] = bound * (static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1);
  }
  return tensor;
}

inline bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// The initial value of a parameter in tests. Matrices preserve the variance of their input;
/// weights of norms are close to 1.
inline at::Tensor filled_parameter(const std::string& name, at::IntArrayRef shape) {
  constexpr double kSmall = 0.02;  // for features as large as the square of an offset
  if (ends_with(name, "position_weight")) return filled(name, shape, kSmall);
  if (shape.size() < 2) return filled(name, shape, 0.25) + (ends_with(name, ".weight") ? 1 : 0);
  const bool is_linear = ends_with(name, ".weight");  // [out, in]; others are [in, out]
  const auto inputs = static_cast<double>(is_linear ? shape[1] : shape[shape.size() - 2]);
  return filled(name, shape, std::sqrt(3 / inputs));
}

/// Sets every parameter of a module to its `filled_parameter`.
inline void fill_parameters(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters())
    item.value().copy_(filled_parameter(item.key(), item.value().sizes()));
}

}  // namespace translution::testing
