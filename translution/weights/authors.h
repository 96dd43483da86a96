#pragma once

#include <map>
#include <string>

#include "translution/models/options.h"
#include "translution/weights/link.h"

namespace translution {

/// Maps the weights of the authors' released code to ours, tensor by tensor.
///
/// Their `unique_params` tables have the same order of rows as ours: the offsets, then the class
/// token's three rows. But they use the mirrored offset for queries and keys, and for queries they
/// swap the class token's "in" and "out" rows. In a causal table only the queries are mirrored.
/// Their matrices have the layout of torch.nn.Linear; some are stacked. Their files also store
/// masks and rotary tables, which follow from the model's options.

/// The links of one of their models, one or more for every parameter of `options`. Throws on
/// options that their code does not have. `family` matters only if it is "rope": those layers store
/// rotary tables that they do not use, and are otherwise equal to "v".
Links authors_links(const ModelOptions& options, const std::string& family = "");

/// The links of one of their layers, which begins with a norm. Our tensors are named "norm.…" and
/// "attention.…".
Links authors_links(const AttentionOptions& layer, const std::string& family = "");

/// A layer or a model of the authors' code.
struct AuthorsModule {
  enum class Kind { layer, vit, gpt };
  Kind kind;
  std::string family;
  AttentionOptions layer{1};  ///< if kind is layer
  ModelOptions model;         ///< if kind is vit or gpt

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
/// has the arguments of their constructors by name, with values as Python prints them: dim, heads,
/// dim_head, relative_dim (or dim_relenc), and for
///   a layer   grid "(3, 2)", cls "True", causal "4" (the length of a causal sequence)
///   a vit     image_size "(6, 4)" or "6", patch_size, num_classes, channels, depth, mlp_dim,
///             hybrid_layers (or tln_num)
///   a gpt     seq_len, vocab_size, depth, mlp_dim, hybrid_layers, pos_embedding
/// The value "None" leaves an option at its default. Throws on unknown names.
AuthorsModule read_authors_module(const std::string& family, const std::string& kind,
                                  const std::map<std::string, std::string>& options);

}  // namespace translution
