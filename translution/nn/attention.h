#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/nn/options.h"
#include "translution/ops/lookahead.h"
#include "translution/ops/methods.h"

namespace translution {

/// These parameters with the values that they start with, in the same order. On the CPU in memory
/// that is kept when it is freed (ops/large.h). Random numbers, here and below, come from
/// `generator`, or from the process's where it is undefined.
TRANSLUTION_API std::vector<std::pair<std::string, at::Tensor>> start_attention(
    const AttentionOptions& options, const at::TensorOptions& tensors = torch::kFloat,
    const at::Generator& generator = {});

/// Vectors that are learned as they are, one per place or token: small, but N(0, 1) in the
/// authors' code.
TRANSLUTION_API at::Tensor start_vectors(at::IntArrayRef shape, Init init,
                                         const at::TensorOptions& tensors = torch::kFloat,
                                         const at::Generator& generator = {});

/// What a layer makes of its options once, for every call.
struct AttentionLayout {
  std::string pairs;             ///< how tokens relate: the text of a PairsName
  int64_t tokens = 0;            ///< that it takes; 0: any number
  bool shorter = false;          ///< it takes fewer as well
  at::Tensor angles;             ///< rotary, [N, D/2]
  at::Tensor position_features;  ///< gated position, [M, F]
};
TRANSLUTION_API AttentionLayout attention_layout(const AttentionOptions& options);

/// A parameter of a layer by its name; undefined where the layer has none of that name.
using WeightOf = std::function<at::Tensor(const char* name)>;

/// A layer before its output projection, as a function of its weights: checks x [B,N,dim] and picks
/// the method's function of ops/methods.h. `call` is filled but for what the layout and x say.
TRANSLUTION_API MethodResult apply_method(const at::Tensor& x, int64_t dim,
                                          const Position& position, const AttentionLayout& layout,
                                          const WeightOf& weight, AttentionCall call,
                                          double dropout, const at::Generator& generator = {});

/// Query rows [Nq] int64 as plain numbers; all rows where it is undefined.
TRANSLUTION_API std::vector<int64_t> query_rows(const at::Tensor& rows);

/// Multi-head attention by any method of the family, with output projection:
/// x [B,N,dim] -> [B,N,dim], or [B,Nq,dim] for the query rows asked for. A call changes nothing in
/// the layer: several threads may share one.
class TRANSLUTION_API AttentionImpl : public torch::nn::Cloneable<AttentionImpl> {
 public:
  explicit AttentionImpl(AttentionOptions options, const at::Generator& generator = {});
  void reset() override;

  /// A one-dimensional grid takes any shorter input as well.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& rows = {},
                        const at::Generator& generator = {});
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
  void start(const at::Generator& generator);
  AttentionCall call_for(const torch::Tensor& rows, bool map) const;
  WeightOf weights() const;
  double dropout() const { return is_training() ? options.dropout() : 0.0; }

  std::shared_ptr<const OffsetTable> offsets_;
  AttentionLayout layout_;
};
TORCH_MODULE(Attention);

/// Attention with the method set: Translution(AttentionOptions(192).heads(3).grid({7, 7})).
class TRANSLUTION_API Translution : public Attention {
 public:
  explicit Translution(AttentionOptions options);
};

class TRANSLUTION_API AlphaTranslution : public Attention {
 public:
  explicit AlphaTranslution(AttentionOptions options);
};

}  // namespace translution
