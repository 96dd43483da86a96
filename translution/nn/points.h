#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "translution/nn/attention.h"
#include "translution/ops/points.h"

namespace translution {

/// What happens to a pair whose offset lies beyond the lattice.
enum class Beyond { border, dropped };

/// Where the matrices of a layer between points stand, and which points attend to each other.
struct PointOptions {
  int64_t axes = 3;             ///< numbers of a position: 1, 2 or 3
  std::vector<double> spacing;  ///< between lattice points, in the unit of the positions: 1 or axes
  int64_t radius = 1;           ///< lattice points to each side
  int64_t neighbours = 0;       ///< nearest points that a point attends to; 0: all
  double cutoff = 0;            ///< the farthest point that a point attends to; 0: any
  Beyond beyond = Beyond::border;
  /// The spacing is a parameter, "log_spacing". It stays within a quarter and four times of the
  /// spacing above.
  bool learn_spacing = false;
};

/// The points of one call. Padded clouds have x [B,N,dim], positions [B,N,axes] and a mask [B,N],
/// true for a token, or none. Packed clouds have x [R,dim], positions [R,axes] and a batch [R],
/// int64, the cloud of each row in ascending order.
struct Points {
  torch::Tensor positions;
  torch::Tensor mask{};          ///< for padded clouds; undefined: no padding
  torch::Tensor batch{};         ///< for packed clouds; undefined: one cloud
  torch::Tensor query{}, key{};  ///< pairs of packed rows, int64 [E]; undefined: by the options
};

/// A layer between points without its output projection, as a function of its weights: packed
/// rows [R,dim] -> [R, heads * dim_head].
TRANSLUTION_API at::Tensor attend_points(const at::Tensor& x, const WeightOf& weight,
                                         const PointPairs& pairs, int64_t heads, int64_t dim_head,
                                         Mixing mixing, double dropout = 0,
                                         Precision precision = Precision::float32);

/// Multi-head attention between points whose positions are numbers, with output projection. The
/// matrices of a table stand at the points of a lattice and are read multilinearly between them; on
/// a grid this is `Attention` with the same parameters. It has those of an Attention with a grid of
/// radius + 1 along each axis; with Init::scaled, those of a table start close to each other:
/// between lattice points, independent matrices would average out. With a class token, the first
/// token of each cloud has no position.
class TRANSLUTION_API PointAttentionImpl : public torch::nn::Module {
 public:
  /// `options` must not have a grid, a causal mask, an absolute encoding or rotary position.
  PointAttentionImpl(AttentionOptions options, PointOptions points,
                     const at::Generator& generator = {});

  /// The shape of x. Padding gives zeros; a point without keys gives out->bias.
  torch::Tensor forward(const torch::Tensor& x, const Points& points);

  /// The pairs of packed points: cloud c has rows first[c] … first[c + 1] - 1.
  PointPairs pairs(const torch::Tensor& positions, const torch::Tensor& first,
                   const torch::Tensor& query = {}, const torch::Tensor& key = {}) const;
  /// [1] or [axes]
  torch::Tensor spacing() const;

  const PointOptions points;
  AttentionOptions options;
  torch::nn::Linear out{nullptr};

 private:
  torch::Tensor log_spacing_, given_spacing_;
};
TORCH_MODULE(PointAttention);

}  // namespace translution
