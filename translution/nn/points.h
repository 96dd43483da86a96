#pragma once

#include "translution/nn/attention.h"
#include "translution/ops/points.h"

namespace translution {

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
/// Dropout draws from `generator`, or from LibTorch's default generator if it is undefined.
TRANSLUTION_API at::Tensor attend_points(const at::Tensor& x, const WeightOf& weight,
                                         const PointPairs& pairs, int64_t heads, int64_t dim_head,
                                         Mixing mixing, double dropout = 0,
                                         Precision precision = Precision::float32,
                                         const at::Generator& generator = {});

/// The spacing of a lattice as `like`: that of the options, or the learned one.
TRANSLUTION_API at::Tensor lattice_spacing(const PointOptions& points,
                                           const at::Tensor& log_spacing,
                                           const at::TensorOptions& like);
/// The start of a parameter "log_spacing": the spacing of the options.
TRANSLUTION_API at::Tensor start_spacing(const PointOptions& points);
/// Which pairs the options give.
TRANSLUTION_API PointRule point_rule(const PointOptions& points, bool cls);

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

  /// Packed rows [R,dim] -> [R,dim], with pairs that are known already.
  torch::Tensor attend(const torch::Tensor& x, const PointPairs& pairs,
                       const at::Generator& generator = {});
  /// The attention weights [E,heads] of the pairs; ones with Method::convolution.
  torch::Tensor attention_map(const torch::Tensor& x, const PointPairs& pairs) const;

  /// The pairs of packed points: cloud c has rows first[c] … first[c + 1] - 1.
  PointPairs pairs(const torch::Tensor& positions, const torch::Tensor& first,
                   const torch::Tensor& query = {}, const torch::Tensor& key = {}) const;
  /// [1] or [axes]
  torch::Tensor spacing() const;

  const PointOptions points;
  AttentionOptions options;
  torch::nn::Linear out{nullptr};

 private:
  WeightOf weights() const;

  torch::Tensor log_spacing_;
};
TORCH_MODULE(PointAttention);

}  // namespace translution
