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

/// All random inputs start from this seed and the name of what they are for.
constexpr uint64_t kSeed = 20251013;
/// A generator for the thing called `name`.
at::Generator generator(const std::string& name);
/// Standard normal doubles.
at::Tensor normal(at::IntArrayRef shape, at::Generator& random);

/// Does this run take the portable path everywhere (TRANSLUTION_IMPL=portable)?
bool runs_portable();

/// One call of one op: sizes and every choice that position allows.
struct Config {
  Method method = Method::translution;
  Roles roles;
  std::vector<int64_t> grid{5};
  bool cls = false;
  bool causal = false;
  bool mask_only = false;  ///< causal by the op's flag, over a table of all pairs
  Encoding encoding = Encoding::relative;
  Sharing sharing = Sharing::none;
  int64_t radius = 1;  ///< of sharing, and of the convolution's window
  int64_t B = 2, C = 5, H = 1, D = 3;
  int64_t R = 2;      ///< alpha: channels of a head in the small space
  int64_t R_out = 0;  ///< the same behind the tables; 0: R
  bool shared = true;
  Mixing mixing = Mixing::sum;
  bool rotary = false;
  double dropout = 0.0;
  bool biases = false;  ///< on the q, k and v of plain attention
  Precision precision = Precision::float32;
  std::vector<int64_t> rows;      ///< empty: all
  std::vector<int64_t> relation;  ///< N x N slots in place of the grid's, with `mirror`
  std::vector<int64_t> mirror;

  int64_t tokens() const;
  std::string str() const;
};

/// Inputs by name; a name that is not there stands for an undefined tensor.
using Inputs = std::map<std::string, at::Tensor>;

/// A config with random weights: the op and the oracle on the same inputs.
class Case {
 public:
  explicit Case(Config config);

  const Config& config() const { return config_; }
  const Inputs& inputs() const { return inputs_; }  ///< doubles
  Inputs inputs_as(at::TensorOptions options) const;
  Inputs inputs_with_grad() const;

  /// The op, as a caller would use it.
  at::Tensor run(const Inputs& inputs) const { return attend(inputs, false).out; }
  at::Tensor run() const { return run(inputs_); }
  MethodResult attend(const Inputs& inputs, bool map) const;
  /// The oracle. With dropout it takes the mask that the op draws from the same seed.
  at::Tensor expected() const;
  /// The same formula in plain LibTorch operations, in the type of the inputs.
  MethodResult plain(const Inputs& inputs, rounded_oracle::Rounding rounding) const;

  /// Without the dropout mask, which `attend` draws.
  AttentionCall call() const;
  oracle::Call oracle_call() const;

 private:
  Config config_;
  oracle::Pairing pairing_;
  std::string pairs_;
  Inputs inputs_;
};

/// Grids of one to four axes, each with and without class token, causal (by table, by mask, not),
/// and chosen rows: what every method is tried on.
std::vector<Config> settings();
/// Layers whose channels, heads and batch fit no vector width, wide enough to fill several.
std::vector<Config> wide_configs();
/// "qkv", "qk", … all seven subsets that are not empty.
std::vector<Roles> all_roles();
/// The methods that self_attention covers, with its position terms.
std::vector<Method> self_attention_methods();
/// A relation of six tokens and four slots with holes; token 2 sees nothing.
Config relation_config(Method method);

/// max |a - b| / max(1, max |b|)
double error(const at::Tensor& a, const at::Tensor& b);

/// Gradients of sum(run(inputs) * weight) for inputs that ask for one, by name; undefined entries
/// where autograd gives none.
Inputs gradients(const Case& c, const Inputs& inputs, const at::Tensor& weight);

}  // namespace translution::testing
