#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "translution/core/export.h"
#include "translution/nn/options.h"
#include "translution/ops/lookahead.h"
#include "translution/ops/methods.h"

namespace translution {

/// The initialised parameters of a layer by name, in the order of attention_parameters(). On the
/// CPU they are allocated from the pool of large tensors (ops/large.h). Random numbers, here and
/// below, come from `generator`, or from LibTorch's default generator if it is undefined. A part of
/// a table has the same numbers as in the whole table, and leaves the generator in the same state.
TRANSLUTION_API std::vector<std::pair<std::string, at::Tensor>> start_attention(
    const AttentionOptions& options, const at::TensorOptions& tensors = torch::kFloat,
    const at::Generator& generator = {});

/// The rows of the tables that options.share() splits, by name of the parameter; empty if the layer
/// has all slots.
TRANSLUTION_API std::map<std::string, TableRows> table_rows(const AttentionOptions& options);

/// Initialised embedding vectors, one per position or token: N(0, 0.02), or N(0, 1) with
/// Init::authors.
TRANSLUTION_API at::Tensor start_vectors(at::IntArrayRef shape, Init init,
                                         const at::TensorOptions& tensors = torch::kFloat,
                                         const at::Generator& generator = {});

/// What a layer derives from its options once and uses in every call.
struct AttentionLayout {
  std::string pairs;             ///< which tokens attend to which: the text of a PairsName
  int64_t tokens = 0;            ///< expected number of tokens; 0: any
  bool shorter = false;          ///< fewer tokens are accepted as well
  std::vector<int64_t> grid;     ///< the largest grid; empty without a grid or with a relation
  at::Tensor angles;             ///< rotary, [N, D/2]
  at::Tensor position_features;  ///< gated position, [M, F]
  std::string group = {};        ///< that sums what the parts of the slots give; empty: all slots
};
TRANSLUTION_API AttentionLayout attention_layout(const AttentionOptions& options);

/// Returns a layer's parameter by name, or an undefined tensor if the layer has no such parameter.
using WeightOf = std::function<at::Tensor(const char* name)>;

/// A layer without its output projection, as a function of its weights: checks x [B,N,dim] and
/// calls the method's function of ops/methods.h. The caller fills `call`, except for the text of
/// its pairs, angles and dropout mask, which come from the layout, x and `dropout`.
TRANSLUTION_API MethodResult apply_method(const at::Tensor& x, int64_t dim,
                                          const Position& position, const AttentionLayout& layout,
                                          const WeightOf& weight, AttentionCall call,
                                          double dropout, const at::Generator& generator = {});

/// Query rows [Nq] int64 as a vector; empty, which means all rows, if `rows` is undefined.
TRANSLUTION_API std::vector<int64_t> query_rows(const at::Tensor& rows);

struct PointPairs;

/// The arguments of one call of a layer or a model, other than its input.
struct AttendOptions {
  AttendOptions() = default;
  /// Not explicit, so that a call with rows alone is layer->forward(x, rows).
  AttendOptions(torch::Tensor query_rows) : rows(std::move(query_rows)) {}

  torch::Tensor rows;  ///< query rows [Nq], int64; undefined: all tokens
  /// Bool [B,N]: true for a token, false for padding, which no token attends to. Undefined: no
  /// padding.
  torch::Tensor key_padding_mask;
  /// The grid of x if it is smaller than that of the layer. An offset reads the same weights.
  std::vector<int64_t> grid;
  const PointPairs* points = nullptr;  ///< of blocks between points: the pairs of packed rows
  at::Generator generator;             ///< for dropout; undefined: LibTorch's default generator
};

/// Multi-head attention by any method of the family, with output projection:
/// x [B,N,dim] -> [B,N,dim], or [B,Nq,dim] for the given query rows. Calls do not modify the layer,
/// so several threads may share it.
class TRANSLUTION_API AttentionImpl : public torch::nn::Cloneable<AttentionImpl> {
 public:
  explicit AttentionImpl(AttentionOptions options, const at::Generator& generator = {});
  void reset() override;

  /// With a one-dimensional grid, x may have fewer tokens than the grid. A query whose keys are all
  /// padding attends to nothing: its output is out->bias.
  torch::Tensor forward(const torch::Tensor& x, const AttendOptions& call = {});
  /// The output and the attention map [B,heads,Nq,N].
  std::pair<torch::Tensor, torch::Tensor> forward_with_map(const torch::Tensor& x,
                                                           const AttendOptions& call = {});

  /// For a sequence that grows token by token. Returned only where it is faster than `forward` with
  /// `rows`: Translution with q, k and v all relative, on a causal sequence, on the CPU with fused
  /// kernels.
  std::optional<Lookahead> lookahead() const;

  /// Null if the method uses no offsets.
  const std::shared_ptr<const OffsetTable>& offsets() const { return offsets_; }
  std::map<std::string, TableRows> table_rows() const { return translution::table_rows(options); }

  AttentionOptions options;
  torch::nn::Linear out{nullptr};

 private:
  void initialise(const at::Generator& generator);
  MethodResult attend(const torch::Tensor& x, const AttendOptions& call, bool map) const;
  WeightOf weights() const;

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
