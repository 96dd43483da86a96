#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/oracle.h"
#include "tests/support/rounded_oracle.h"
#include "translution/core/position.h"
#include "translution/ops/methods.h"

namespace translution::testing {

/// The seed of all random inputs, combined with a name.
constexpr uint64_t kSeed = 20251013;
/// A generator seeded with kSeed and `name`.
at::Generator generator(const std::string& name);
/// Standard normal doubles.
at::Tensor normal(at::IntArrayRef shape, at::Generator& random);

/// A key padding mask of random tokens, about two thirds of all.
at::Tensor random_mask(int64_t batch, int64_t tokens, at::Generator& random);

/// Returns whether all ops use the portable path (TRANSLUTION_IMPL=portable).
bool runs_portable();

/// One call of one op: its sizes and options.
struct Config {
  Method method = Method::translution;
  Roles roles;
  std::vector<int64_t> grid{5};
  bool cls = false;
  bool causal = false;
  bool mask_only = false;  ///< causal pairs, but a table with slots for all offsets
  Encoding encoding = Encoding::relative;
  Sharing sharing = Sharing::none;
  int64_t radius = 1;  ///< radius of sharing, and of the window of a convolution
  int64_t B = 2, C = 5, H = 1, D = 3;
  int64_t R = 2;      ///< alpha: channels of a head before the tables
  int64_t R_out = 0;  ///< alpha: channels of a head after the tables; 0: R
  bool shared = true;
  Mixing mixing = Mixing::sum;
  bool rotary = false;
  double dropout = 0.0;
  bool biases = false;  ///< biases of q, k and v in plain attention
  bool mask = false;    ///< key padding at random tokens
  Precision precision = Precision::float32;
  std::vector<int64_t> rows;      ///< empty: all
  std::vector<int64_t> relation;  ///< N x N slots that replace those of the grid; needs `mirror`
  std::vector<int64_t> mirror;

  int64_t tokens() const;
  std::string str() const;
};

/// Inputs by name. A missing name means an undefined tensor.
using Inputs = std::map<std::string, at::Tensor>;

/// A config with random inputs. Runs the op and the oracle on the same inputs.
class Case {
 public:
  explicit Case(Config config);

  const Config& config() const { return config_; }
  const Inputs& inputs() const { return inputs_; }  ///< doubles
  Inputs inputs_as(at::TensorOptions options) const;
  Inputs inputs_with_grad() const;

  /// Runs the op as a user would call it.
  at::Tensor run(const Inputs& inputs) const { return attend(inputs, false).out; }
  at::Tensor run() const { return run(inputs_); }
  MethodResult attend(const Inputs& inputs, bool map) const;
  /// Runs the oracle. With dropout it uses the mask that the op draws from the same seed.
  at::Tensor expected() const;
  /// The same formula in plain LibTorch operations, in the type of the inputs.
  MethodResult plain(const Inputs& inputs, rounded_oracle::Rounding rounding) const;

  /// The arguments of the op, without the dropout mask, which `attend` draws.
  AttentionCall call() const;
  /// The key padding mask; undefined without.
  at::Tensor& mask() { return mask_; }
  oracle::Call oracle_call() const;

 private:
  Config config_;
  oracle::Pairing pairing_;
  std::string pairs_;
  at::Tensor mask_;
  Inputs inputs_;
};

/// Configs on which every method is compared with the oracle: grids of one to four axes, each with
/// and without class token, causal (by table or by mask) or not, and with or without query rows.
std::vector<Config> oracle_configs();
/// Layers whose channels, heads and batch are not multiples of a vector width, but fill several
/// vectors.
std::vector<Config> wide_configs();
/// All seven non-empty subsets: "qkv", "qk", …
std::vector<Roles> all_roles();
/// The methods that self_attention covers, with its position terms.
std::vector<Method> self_attention_methods();
/// A relation of six tokens and four slots. Some pairs are missing; token 2 has none.
Config relation_config(Method method);

/// max |a - b| / max(1, max |b|)
double error(const at::Tensor& a, const at::Tensor& b);

/// Gradients of sum(run(inputs) * weight) by name, for inputs that require a gradient. Undefined if
/// autograd gives none.
Inputs gradients(const Case& c, const Inputs& inputs, const at::Tensor& weight);

}  // namespace translution::testing
