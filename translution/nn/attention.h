#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/position.h"
#include "translution/ops/functional.h"
#include "translution/ops/lookahead.h"

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
};

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
  TORCH_ARG(int64_t, workspace) = default_workspace();
  /// A relation of the caller's own instead of the grid's offsets.
  TORCH_ARG(std::shared_ptr<const OffsetTable>, relation);
};

/// Does nothing in the layer know the places of its tokens, so that it takes any number of them?
bool takes_any_length(const AttentionOptions& options);

/// One parameter of a layer.
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  int64_t fan_in = 0;     ///< 0 for vectors and numbers
  bool per_slot = false;  ///< the first dimension counts the slots of the offset table

  int64_t count() const;  ///< numbers in it; refuses a product that overflows
};

/// What AttentionImpl registers, without allocating it. Refuses options that make no sense.
std::vector<ParameterSpec> attention_parameters(const AttentionOptions& options);

/// These parameters with the values that they start with, in the same order. On the CPU in memory
/// that is kept when it is freed (ops/large.h).
std::vector<std::pair<std::string, at::Tensor>> start_attention(
    const AttentionOptions& options, const at::TensorOptions& tensors = torch::kFloat);

/// Vectors that are learned as they are, one per place or token: small, but N(0, 1) in the
/// authors' code.
at::Tensor start_vectors(at::IntArrayRef shape, Init init,
                         const at::TensorOptions& tensors = torch::kFloat);

/// What a layer makes of its options once, for every call.
struct AttentionTables {
  int64_t tokens = 0;    ///< that it takes; 0: any number
  bool shorter = false;  ///< it takes fewer as well
  at::Tensor runs;       ///< of all tokens (ops/runs.h); undefined where no offsets are read
  at::Tensor angles;     ///< rotary, [N, D/2]
  at::Tensor position_features;  ///< gated position, [M, F]
};

/// Multi-head attention by any method of the family, with output projection:
/// x [B,N,dim] -> [B,N,dim], or [B,Nq,dim] for the query rows asked for.
class AttentionImpl : public torch::nn::Cloneable<AttentionImpl> {
 public:
  explicit AttentionImpl(AttentionOptions options);
  void reset() override;

  /// A one-dimensional grid takes any shorter input as well.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& rows = {});
  /// The attention map [B,heads,Nq,N] beside the output.
  std::pair<torch::Tensor, torch::Tensor> forward_with_map(const torch::Tensor& x,
                                                           const torch::Tensor& rows = {});

  /// For a text that grows token by token, where that is faster than rows of `forward`: with a
  /// matrix per offset for all of q, k and v, on the CPU.
  std::optional<Lookahead> lookahead() const;

  /// Null where the method reads no offsets.
  const std::shared_ptr<const OffsetTable>& offsets() const { return offsets_; }

  AttentionOptions options;
  torch::nn::Linear out{nullptr};

 private:
  Attended attended(const torch::Tensor& x, const torch::Tensor& rows, bool map);

  std::shared_ptr<const OffsetTable> offsets_;
  AttentionTables tables_;
  torch::Tensor runs_;  // of `runs_tokens_` tokens
  int64_t runs_tokens_ = 0;
};
TORCH_MODULE(Attention);

/// Attention with the method set: Translution(AttentionOptions(192).heads(3).grid({7, 7})).
class Translution : public Attention {
 public:
  explicit Translution(AttentionOptions options);
};

class AlphaTranslution : public Attention {
 public:
  explicit AlphaTranslution(AttentionOptions options);
};

}  // namespace translution
