#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"
#include "translution/core/offsets.h"
#include "translution/core/position.h"
#include "translution/core/precision.h"
#include "translution/core/slot_part.h"
#include "translution/ops/runtime.h"

namespace translution {

/// How weights are initialised.
enum class Init {
  scaled,   ///< every matrix U(+-1/sqrt(in))
  authors,  ///< tables [M, in, out] U(+-1/sqrt(in*out)), as in the authors' released code
  none,     ///< not initialised: for a model whose weights are loaded next
};

inline constexpr Named<Init> kInits[] = {
    {Init::scaled, "scaled", "by the number of input channels"},
    {Init::authors, "authors", "as in the authors' released code"},
    {Init::none, "none", "not initialised"},
};
/// The first entries, which users may choose; `none` is for programs that load weights next.
inline constexpr size_t kInitsForUsers = 2;

struct AttentionOptions {
  explicit AttentionOptions(int64_t dim) : dim_(dim) {}

  TORCH_ARG(int64_t, dim);  ///< channels of input and output
  TORCH_ARG(int64_t, heads) = 1;
  /// Sides of the token grid. May be empty if the method does not use positions; the layer then
  /// takes any number of tokens.
  TORCH_ARG(std::vector<int64_t>, grid);
  TORCH_ARG(bool, cls) = false;  ///< a class token before the grid's tokens
  TORCH_ARG(bool, causal) = false;
  TORCH_ARG(Position, position);      ///< the method and its options
  TORCH_ARG(bool, qkv_bias) = false;  ///< on q, k and v; a relative role has one per slot
  TORCH_ARG(double, dropout) = 0.0;   ///< of the attention map
  TORCH_ARG(Init, init) = Init::scaled;
  /// Bytes of encoded queries and keys that forward may save for backward.
  TORCH_ARG(int64_t, workspace) = runtime().workspace();
  TORCH_ARG(Precision, precision) = Precision::float32;  ///< of matrix products
  /// A custom relation between tokens, used instead of the grid's offsets.
  TORCH_ARG(std::shared_ptr<const OffsetTable>, relation);
  /// Which rows of its tables of matrices the layer has. Vectors and numbers per slot are whole.
  TORCH_ARG(SlotShare, share);

 public:
  /// Channels per head; unless set, dim / heads. Throws if that is no whole number.
  TRANSLUTION_API int64_t dim_head() const;
  AttentionOptions& dim_head(int64_t channels) {
    dim_head_ = channels;
    return *this;
  }

 private:
  std::optional<int64_t> dim_head_;
};

/// True if the layer does not use positions and so takes any number of tokens.
TRANSLUTION_API bool takes_any_length(const AttentionOptions& options);

/// One parameter of a layer.
struct TRANSLUTION_API ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  int64_t fan_in = 0;     ///< 0 for vectors and scalars; a bias row is not counted
  bool per_slot = false;  ///< the first dimension is the number of slots, or of those of a part

  int64_t count() const;  ///< number of elements; throws if the product overflows
  /// True for an operand of matrix products; other parameters are added or looked up.
  bool is_multiplied() const { return shape.size() >= 2 && fan_in > 0; }
  /// True for a table with a matrix per slot, which the processes of a SlotShare split.
  bool is_split() const { return per_slot && is_multiplied(); }
};

/// The parameters that AttentionImpl registers; allocates nothing. Throws on invalid options.
TRANSLUTION_API std::vector<ParameterSpec> attention_parameters(const AttentionOptions& options);

/// What happens to a pair of points whose offset lies beyond the lattice.
enum class Beyond { border, dropped };

/// Where the matrices of a layer between points stand, and which points attend to each other.
struct PointOptions {
  int64_t axes = 3;             ///< numbers of a position: 1, 2 or 3
  std::vector<double> spacing;  ///< between lattice points, in the unit of the positions: 1 or axes
  int64_t radius = 1;           ///< lattice points to each side
  int64_t neighbours = 0;       ///< nearest points that a point attends to; 0: all
  double cutoff = 0;            ///< the farthest point that a point attends to; 0: any
  Beyond beyond = Beyond::border;
  /// The offset of a pair is its distance, on a lattice with one axis: no rotation or reflection
  /// changes the result. Matrices of the sign that does not occur are not trained.
  bool distances = false;
  /// The spacing is a parameter, "log_spacing". It stays within a quarter and four times of the
  /// spacing above.
  bool learn_spacing = false;

  int64_t lattice_axes() const { return distances ? 1 : axes; }
};

/// The options of an Attention on a grid that has the parameters of a layer between points, apart
/// from the spacing.
TRANSLUTION_API AttentionOptions grid_options(AttentionOptions options, const PointOptions& points);

enum class Gelu { exact, tanh };

inline constexpr Named<Gelu> kGelus[] = {
    {Gelu::exact, "exact", "x times the normal distribution function of x"},
    {Gelu::tanh, "tanh", "the tanh approximation, as in GPT-2"},
};

/// The options of a block, apart from its attention and its widths.
struct BlockStyle {
  double dropout = 0.0;
  Gelu gelu = Gelu::exact;
  double norm_eps = 1e-5;
  Precision precision = Precision::float32;
  Init init = Init::scaled;
};

}  // namespace translution
