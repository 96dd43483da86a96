#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/position.h"
#include "translution/nn/options.h"

namespace translution {

/// Depth and widths of a backbone; heads are 64 channels wide unless set otherwise.
struct Architecture {
  std::string name;
  int64_t depth, dim, heads, mlp_dim, dim_head;
};

/// The paper's A, B and C, two larger ones, and one to try things out with: names "a", "b", "c",
/// "base", "large", "tiny".
TRANSLUTION_API const std::vector<Architecture>& architectures();

/// One of these by its name, or one written out as depth, width, heads and MLP width (and width
/// of a head, unless it is the width by the heads): "6x192x3x768". Nothing for other names.
TRANSLUTION_API std::optional<Architecture> find_architecture(const std::string& name);

/// One of these sizes: with its name, or written out.
TRANSLUTION_API Architecture architecture_of(int64_t depth, int64_t dim, int64_t heads,
                                             int64_t mlp_dim, int64_t dim_head);

/// "vit-a", "vit-b"… "gpt-large": every family with every architecture; then the authors' names.
TRANSLUTION_API std::vector<std::string> model_names();

enum class Family { vit, gpt };
enum class Pooling { cls, mean };

inline constexpr Named<Pooling> kPoolings[] = {
    {Pooling::cls, "cls", "read the class token"},
    {Pooling::mean, "mean", "average the patches; there is no class token"},
};

/// Everything that decides a model: which parameters it has and what it computes.
struct TRANSLUTION_API ModelOptions {
  Family family = Family::vit;
  Architecture architecture{"a", 6, 192, 3, 768, 64};

  // ViT
  std::vector<int64_t> image_size{224, 224};
  int64_t patch_size = 16;
  int64_t channels = 3;
  int64_t classes = 1000;
  Pooling pooling = Pooling::cls;

  // GPT
  int64_t length = 160;  ///< the most tokens it takes
  int64_t vocabulary = 50257;

  // Position
  Position position;
  std::optional<bool> input_embedding;   ///< unset: as the method has it
  std::optional<int64_t> hybrid_layers;  ///< so many layers use the method, the rest is plain
  Method rest = Method::self_attention_no_pos;  ///< of a hybrid: this or rotary

  // Layout: as in the paper, or as in other models of the kind (GPT-2, timm's ViT).
  bool extra_norms = true;  ///< ViT: around the patch embedding; GPT: a second one before the head
  bool qkv_bias = false;    ///< in every layer
  Gelu gelu = Gelu::exact;
  double norm_eps = 1e-5;

  double dropout = 0.0;
  Init init = Init::scaled;
  Precision precision = Precision::float32;  ///< of products; weights are float32 in either
  /// Bytes that each layer may keep for backward; unset: default_workspace(). Not saved with a
  /// model.
  std::optional<int64_t> workspace;

  /// Reads a name such as "vit-a/12", "gpt-a-160", "vit-base", "gpt-6x192x3x768-160" into family,
  /// architecture and patch size or length; or one of the authors' (models/authors.h), which says
  /// more. Unknown: one line with the nearest known name.
  static ModelOptions named(const std::string& name);
  /// "vit-a/12", "gpt-a-160".
  std::string name() const;

  /// Sides of the token grid: patches of the image, or the length.
  std::vector<int64_t> grid() const;
  bool has_cls() const { return family == Family::vit && pooling == Pooling::cls; }
  bool is_causal() const { return family == Family::gpt; }
  int64_t tokens() const;
  bool embeds_input() const { return input_embedding.value_or(position.embeds_input()); }
  /// The attention of layer `layer`.
  AttentionOptions attention(int64_t layer) const;
  BlockStyle block_style() const { return {dropout, gelu, norm_eps, precision, init}; }
  /// Refuses sizes that make no sense.
  void check() const;
};

}  // namespace translution
