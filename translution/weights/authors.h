#pragma once

#include <map>
#include <string>

#include "translution/models/options.h"
#include "translution/weights/link.h"

namespace translution {

/// The weights of the authors' released code, key by key.
///
/// Their `unique_params` tables number the offsets as ours do, the class token's three rows behind
/// them, but read queries and keys at the mirrored offset, and queries with the class token's in
/// and out swapped. Of a causal table only the queries are mirrored. Their matrices are those of
/// torch.nn.Linear, some of them stacked. Masks and rotary tables, which they save too, follow from
/// the model.

/// One of their models: every parameter of `options` has its link. Refuses options that their code
/// does not have. `family` is asked only whether it is "rope", whose layers keep rotary tables that
/// they do not use; otherwise they are those of "v".
Links authors_links(const ModelOptions& options, const std::string& family = "");

/// One of their layers, which begins with a norm: ours are "norm.…" and "attention.…".
Links authors_links(const AttentionOptions& layer, const std::string& family = "");

/// A layer or a model of theirs, described in their own terms.
struct AuthorsModule {
  enum class Kind { layer, vit, gpt };
  Kind kind;
  std::string family;
  AttentionOptions layer{1};  ///< of a layer
  ModelOptions model;         ///< of a model

  Links links() const {
    return kind == Kind::layer ? authors_links(layer, family) : authors_links(model, family);
  }
};

inline constexpr Named<AuthorsModule::Kind> kAuthorsKinds[] = {
    {AuthorsModule::Kind::layer, "layer", "one attention layer with the norm before it"},
    {AuthorsModule::Kind::vit, "vit", "images to classes"},
    {AuthorsModule::Kind::gpt, "gpt", "tokens to next-token logits"},
};

/// `family` is one of authors_families() or, for a model, one of authors_model_names(). `options`
/// has the names of their constructors' arguments with Python's texts: dim, heads, dim_head,
/// relative_dim (also dim_relenc), and for
///   a layer   grid "(3, 2)", cls "True", causal "4": the length of a causal sequence
///   a vit     image_size "(6, 4)" or "6", patch_size, num_classes, channels, depth, mlp_dim,
///             hybrid_layers (also tln_num)
///   a gpt     seq_len, vocab_size, depth, mlp_dim, hybrid_layers, pos_embedding
/// "None" leaves an option at its default.
AuthorsModule read_authors_module(const std::string& family, const std::string& kind,
                                  const std::map<std::string, std::string>& options);

}  // namespace translution
