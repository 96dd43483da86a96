#include "tests/ops/precision_cases.h"

#include <cmath>

#include "translution/core/error.h"
#include "translution/ops/project.h"

namespace translution::testing {

using namespace detail;

const std::vector<PrecisionLayout>& precision_layouts() {
  constexpr auto kRelative = Encoding::relative, kAbsolute = Encoding::absolute;
  static const std::vector<PrecisionLayout> all = {
      {"image", {7, 5}, true, false, 3, 26, 2, 13, 5},
      {"wide image", {7, 5}, true, false, 1, 72, 3, 24, 11},
      {"text", {13}, false, true, 3, 97, 1, 97, 33},
      {"text by mask", {13}, false, true, 3, 72, 2, 36, 9, {}, kRelative, Sharing::none, 1, true},
      {"volume", {3, 3, 2}, false, false, 1, 97, 3, 24, 8},
      {"absolute", {3, 2}, true, false, 3, 72, 2, 36, 8, {}, kAbsolute},
      {"direction", {5, 4}, true, false, 3, 26, 2, 13, 5, {}, kRelative, Sharing::direction},
      {"logarithmic", {4, 5}, 0, 0, 17, 26, 3, 8, 7, {}, kRelative, Sharing::logarithmic, 0},
      {"rows", {4, 3}, true, false, 3, 97, 3, 31, 7, {5, 0, 6, 5}},
      {"rows of 17", {4, 3}, true, false, 17, 26, 2, 13, 5, {5, 0, 6, 5}},
      {"volume of 17", {3, 3, 2}, false, false, 17, 26, 3, 8, 6},
      {"text of 64", {9}, false, true, 64, 26, 2, 13, 5},
      {"image of 64", {2, 3}, true, false, 64, 72, 2, 36, 8},
      {"widest image", {2, 3}, true, false, 3, 192, 3, 64, 24},
      {"narrow heads", {3, 3}, false, false, 3, 192, 3, 8, 5},
      {"wide heads", {5}, false, true, 17, 26, 1, 192, 72},
      {"one token", {1}, false, false, 17, 72, 3, 24, 8},
  };
  return all;
}

std::vector<Config> precision_choices() {
  std::vector<Config> all;
  const auto add = [&all](Method method, auto... changes) {
    all.emplace_back().method = method;
    (changes(all.back()), ...);
  };
  for (const auto& entry : kMethods) add(entry.value);
  for (const char* roles : {"q", "k", "v", "qk", "qv", "kv"})
    add(Method::translution, [&](Config& c) { c.roles = Roles::parse(roles); });
  for (const char* roles : {"none", "k", "v", "qk"})
    add(Method::alpha_translution, [&](Config& c) { c.roles = Roles::parse(roles); });
  for (const char* roles : {"none", "qkv", "q", "v"})
    add(Method::alpha_translution,
        [&](Config& c) { c.roles = Roles::parse(roles), c.shared = false; });
  add(Method::alpha_translution, [](Config& c) { c.mixing = Mixing::mean, c.dropout = 0.3; });
  add(Method::alpha_translution, [](Config& c) { c.rotary = true; });
  for (const char* roles : {"qkv", "k", "v"})
    add(Method::alpha_translution, [&](Config& c) { c.roles = Roles::parse(roles), c.R_out = 5; });
  add(Method::translution, [](Config& c) { c.dropout = 0.3; });
  add(Method::translution, [](Config& c) { c.rotary = true, c.roles = Roles::parse("v"); });
  for (const Method method : {Method::self_attention, Method::relative_key})
    add(method, [](Config& c) { c.biases = true, c.dropout = 0.3; });
  return all;
}

Config with_layout(Config config, const PrecisionLayout& layout) {
  config.grid = layout.grid;
  config.cls = layout.cls, config.causal = layout.causal, config.mask_only = layout.mask_only;
  config.B = layout.B, config.C = layout.C, config.H = layout.H;
  config.D = layout.D, config.R = layout.R;
  config.rows = layout.rows;
  if (config.method != Method::convolution) config.encoding = layout.encoding;
  config.sharing = layout.sharing, config.radius = layout.radius;
  const int64_t pairs = 2 * static_cast<int64_t>(config.grid.size());
  if (config.rotary || config.method == Method::rotary)
    config.D = (config.D + pairs) / pairs * pairs;
  config.precision = Precision::bf16;
  return config;
}

std::string Bf16Projection::str() const {
  return join("project rows ", rows, " in ", in, " out ", out, transposed ? " transposed" : "",
              biased ? " biased" : "");
}

Inputs Bf16Projection::inputs() const {
  auto random = generator(str());
  Inputs all{{"x", normal({rows, in}, random)}};
  for (const int64_t w : {1, 2}) {
    const auto weight = normal({in, w * out}, random) / std::sqrt(static_cast<double>(in));
    all[join("weight ", w)] = transposed ? weight.t().contiguous() : weight;
    if (biased) all[join("bias ", w)] = normal({w * out}, random);
  }
  return all;
}

at::Tensor Bf16Projection::ours(const Inputs& in) const {
  std::vector<at::Tensor> biases;
  if (biased) biases = {in.at("bias 1"), in.at("bias 2")};
  return at::cat(project(in.at("x"), {in.at("weight 1"), in.at("weight 2")}, biases, transposed,
                         Precision::bf16),
                 1);
}

at::Tensor Bf16Projection::plain(const Inputs& in, rounded_oracle::Rounding rounding) const {
  std::vector<at::Tensor> products;
  for (const char* w : {"1", "2"}) {
    const auto weight = in.at(join("weight ", w));
    products.push_back(rounded_oracle::product(in.at("x"), transposed ? weight.t() : weight,
                                               rounding,
                                               biased ? in.at(join("bias ", w)) : at::Tensor()));
  }
  return at::cat(products, 1);
}

}  // namespace translution::testing
