#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "translution/nn/attention.h"

namespace translution {

constexpr uint64_t kSeed = 20240607;

/// A position with a name for failure messages.
struct NamedPosition {
  std::string name;
  Position position;
};

/// Every method with default options, in the order of `kMethods`.
inline std::vector<NamedPosition> every_method() {
  std::vector<NamedPosition> all;
  for (const auto& entry : kMethods) {
    all.push_back({entry.name, {}});
    all.back().position.method = entry.value;
  }
  return all;
}

/// Every method, with default options and with those that change its parameters or its result.
inline std::vector<NamedPosition> every_position() {
  auto all = every_method();
  const auto add = [&all](Method method, const std::string& choice, auto choose) {
    NamedPosition named{detail::join(name_of(kMethods, method), " ", choice), {}};
    named.position.method = method;
    choose(named.position);
    all.push_back(named);
  };
  for (const Method method : {Method::translution, Method::alpha_translution}) {
    for (const char* roles : {"none", "q", "k", "v", "qk", "qv", "kv"})
      add(method, roles, [&](Position& p) { p.roles = Roles::parse(roles); });
    add(method, "absolute", [](Position& p) { p.encoding = Encoding::absolute; });
    add(method, "direction", [](Position& p) { p.sharing = Sharing::direction, p.radius = 1; });
    add(method, "logarithmic", [](Position& p) { p.sharing = Sharing::logarithmic; });
  }
  for (const char* roles : {"none", "qkv", "qk", "v"})
    add(Method::alpha_translution, detail::join(roles, " alone"),
        [&](Position& p) { p.shared_qkv = false, p.roles = Roles::parse(roles); });
  add(Method::alpha_translution, "mean", [](Position& p) { p.mixing = Mixing::mean; });
  add(Method::alpha_translution, "of width 0", [](Position& p) { p.relative_dim = 0; });
  for (const char* roles : {"qkv", "q", "kv", "v"})
    add(Method::alpha_translution, detail::join(roles, " to wider heads"),
        [&](Position& p) { p.relative_dim_out = 11, p.roles = Roles::parse(roles); });
  add(Method::alpha_translution, "k alone to narrower heads", [](Position& p) {
    p.relative_dim_out = 3, p.shared_qkv = false, p.roles = Roles::parse("k");
  });
  add(Method::alpha_translution, "rotary", [](Position& p) { p.rotary = true; });
  add(Method::translution, "v rotary",
      [](Position& p) { p.rotary = true, p.roles = Roles::parse("v"); });
  add(Method::relative_bias, "rotary", [](Position& p) { p.rotary = true; });
  add(Method::relative_key, "absolute", [](Position& p) { p.encoding = Encoding::absolute; });
  add(Method::convolution, "of one token", [](Position& p) { p.kernel_size = 1; });
  return all;
}

/// A layer of doubles with weights from the fixed seed.
inline Attention build_layer(const AttentionOptions& options) {
  torch::manual_seed(kSeed);
  Attention layer(options);
  layer->to(torch::kDouble);
  return layer;
}

/// Two samples of 6 channels.
inline at::Tensor random_input(int64_t tokens) {
  torch::manual_seed(kSeed + 1);
  return torch::randn({2, tokens, 6}, torch::kDouble);
}

/// True if two tensors agree to the rounding of a few hundred sums in double precision.
inline bool agree(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b, /*rtol=*/1e-9, /*atol=*/1e-10);
}

/// True if two tensors are equal bit for bit.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); }

}  // namespace translution
