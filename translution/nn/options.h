#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"
#include "translution/core/offsets.h"
#include "translution/core/position.h"
#include "translution/core/precision.h"
#include "translution/ops/runtime.h"

namespace translution {

/// How weights start.
enum class Init {
  scaled,   ///< every matrix U(+-1/sqrt(in))
  authors,  ///< tables [M, in, out] U(+-1/sqrt(in*out)), as the authors' released code has it
  none,     ///< left as allocated: for a model whose weights are loaded next
};

inline constexpr Named<Init> kInits[] = {
    {Init::scaled, "scaled", "by the number of channels that go in"},
    {Init::authors, "authors", "as in the authors' released code"},
    {Init::none, "none", "left as allocated"},
};
/// So many of them are for users; programs choose `none` for weights that are loaded next.
inline constexpr size_t kInitsForUsers = 2;

struct AttentionOptions {
  explicit AttentionOptions(int64_t dim) : dim_(dim) {}

  TORCH_ARG(int64_t, dim);  ///< channels of input and output
  TORCH_ARG(int64_t, heads) = 1;
  TORCH_ARG(int64_t, dim_head) = 64;
  /// Sides of the token grid. Attention that knows no places may leave it out, for any tokens.
  TORCH_ARG(std::vector<int64_t>, grid);
  TORCH_ARG(bool, cls) = false;  ///< a class token in front
  TORCH_ARG(bool, causal) = false;
  TORCH_ARG(Position, position);      ///< the method, with its choices
  TORCH_ARG(bool, qkv_bias) = false;  ///< added to q, k and v; they must be shared by all offsets
  TORCH_ARG(double, dropout) = 0.0;   ///< on the attention
  TORCH_ARG(Init, init) = Init::scaled;
  /// Bytes of encoded queries and keys that forward may keep for backward.
  TORCH_ARG(int64_t, workspace) = runtime().workspace();
  TORCH_ARG(Precision, precision) = Precision::float32;  ///< of products
  /// A relation of the caller's own instead of the grid's offsets.
  TORCH_ARG(std::shared_ptr<const OffsetTable>, relation);
};

/// Does nothing in the layer know the places of its tokens, so that it takes any number of them?
TRANSLUTION_API bool takes_any_length(const AttentionOptions& options);

/// One parameter of a layer.
struct TRANSLUTION_API ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  int64_t fan_in = 0;     ///< 0 for vectors and numbers
  bool per_slot = false;  ///< the first dimension counts the slots of the offset table

  int64_t count() const;  ///< numbers in it; refuses a product that overflows
  /// Is it an operand of matrix products? Others are added or looked up.
  bool is_multiplied() const { return shape.size() >= 2 && fan_in > 0; }
};

/// What AttentionImpl registers, without allocating it. Refuses options that make no sense.
TRANSLUTION_API std::vector<ParameterSpec> attention_parameters(const AttentionOptions& options);

enum class Gelu { exact, tanh };

inline constexpr Named<Gelu> kGelus[] = {
    {Gelu::exact, "exact", "x times the normal distribution's share below x"},
    {Gelu::tanh, "tanh", "its approximation by a hyperbolic tangent, as in GPT-2"},
};

/// In what blocks of the same widths may differ.
struct BlockStyle {
  double dropout = 0.0;
  Gelu gelu = Gelu::exact;
  double norm_eps = 1e-5;
  Precision precision = Precision::float32;
  Init init = Init::scaled;
};

}  // namespace translution
