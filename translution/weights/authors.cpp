#include "translution/weights/authors.h"

#include <ATen/ATen.h>

#include "translution/core/error.h"
#include "translution/models/authors.h"
#include "translution/ops/rotary.h"

namespace translution {

using namespace detail;

namespace {

// --------------------------------------------------------------------------------- constants

// The lower triangle of ones with which their code masks scores.
Link causal_mask(const std::string& prefix, int64_t length) {
  return constant(prefix + "causal", join("the mask of a causal sequence of ", length),
                  at::ones({1, 1, length, length}).tril());
}

// Cosines and sines of the rotation, each angle for both channels of its pair.
void add_rotation(Links& links, const std::string& prefix, const AttentionOptions& o) {
  const bool plane = o.grid().size() == 2;
  auto shape = o.grid();
  shape.insert(shape.begin(), plane ? 1 : 2, 1);
  shape.push_back(o.dim_head());
  const auto half = rotary_angles(o.grid(), /*cls=*/false, o.dim_head(), 10000.0, Angles::in_float);
  const auto angles = at::cat({half, half}, 1).view(shape);
  const std::string meaning = join("rotations on a ", times(o.grid()), " grid, base 10000");
  const std::string name = prefix + (plane ? "rope." : "rotary_emb.");
  links.push_back(constant(name + "cos_cached", meaning, angles.cos()));
  links.push_back(constant(name + "sin_cached", meaning, angles.sin()));
}

// ------------------------------------------------------------------------------------- layer

struct Role {
  char letter;
  const char* name;
  bool Roles::*relative;
};
constexpr Role kRoles[] = {
    {'q', "query", &Roles::q}, {'k', "key", &Roles::k}, {'v', "value", &Roles::v}};

// The row of our table for each row of theirs.
std::vector<int64_t> our_rows(char role, const AttentionOptions& o, int64_t slots) {
  const int64_t offsets = slots - (o.cls() ? 3 : 0);
  const bool mirrored = role == 'q' || (role == 'k' && !o.causal());
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < offsets; ++s) rows.push_back(mirrored ? offsets - 1 - s : s);
  if (!o.cls()) return rows;
  const int64_t itself = offsets, in = offsets + 1, out = offsets + 2;
  const bool swapped = role == 'q';
  rows.insert(rows.end(), {itself, swapped ? out : in, swapped ? in : out});
  return rows;
}

void add_table(Links& links, const std::string& theirs, const std::string& ours, char role,
               const AttentionOptions& o, int64_t in, int64_t out) {
  const int64_t slots = count_slots(o.position().offsets(o.grid(), o.cls(), o.causal()));
  const std::string meaning = join("a matrix for each offset of a ", times(o.grid()), " grid",
                                   o.cls() ? ", three for the class token" : "");
  links.push_back(reordered(theirs + ".unique_params", {slots, in, out}, meaning, ours,
                            our_rows(role, o, slots)));
}

// Their matrix of the roles that all offsets share, one role below the other: to_qkv, to_qv, to_k…
void add_shared(Links& links, const std::string& theirs, const std::string& ours,
                const AttentionOptions& o, const Roles& relative) {
  std::string letters;
  std::vector<std::string> names;
  for (const Role& role : kRoles)
    if (!(relative.*role.relative)) letters += role.letter, names.push_back(ours + role.name);
  if (names.empty()) return;
  const std::vector<int64_t> widths(names.size(), o.heads() * o.dim_head());
  links.push_back(stacked(theirs + "to_" + letters + ".weight", o.dim(), widths,
                          join(letters, " of ", o.heads(), " heads of ", o.dim_head()), names));
}

void add_full(Links& links, const std::string& theirs, const std::string& ours,
              const AttentionOptions& o) {
  const Roles& roles = o.position().roles;
  add_shared(links, theirs, ours, o, roles);
  for (const Role& role : kRoles)
    if (roles.*role.relative)
      add_table(links, join(theirs, "to_", role.letter), ours + role.name, role.letter, o, o.dim(),
                o.heads() * o.dim_head());
}

void add_low_rank(Links& links, const std::string& theirs, const std::string& ours,
                  const AttentionOptions& o) {
  const Position& p = o.position();
  const int64_t width = o.heads() * o.dim_head(), small = p.relative_dim * o.heads();
  const std::string meaning =
      join("relative_dim ", p.relative_dim, " for each of ", o.heads(), " heads");
  add_shared(links, theirs, ours, o, {false, false, false});
  for (const Role& role : kRoles) {
    const bool scores = role.letter != 'v' && (p.roles.q || p.roles.k);
    if (!scores && !(p.roles.*role.relative)) continue;
    const std::string to = join(theirs, "to_", role.letter), name = ours + role.name;
    links.push_back(stacked(to + "1.weight", o.dim(), {small}, meaning, {name + "_down"}));
    if (p.roles.*role.relative)
      add_table(links, to + "2", name + "_offsets", role.letter, o, small, small);
  }
  if (p.roles.v)
    links.push_back(stacked(theirs + "to_v3.weight", small, {width}, meaning, {ours + "value_up"}));
}

void add_norm(Links& links, const std::string& theirs, const std::string& ours, int64_t dim) {
  add_pair(links, theirs, ours, {dim}, join("a norm of ", dim, " channels"));
}

// Their code has no output projection for a single head with dim_head equal to dim.
void add_projection(Links& links, const std::string& theirs, const std::string& ours,
                    const AttentionOptions& o) {
  const int64_t width = o.heads() * o.dim_head(), dim = o.dim();
  if (o.heads() > 1 || width != dim)
    return add_pair(links, theirs + "to_out.0", ours + "out", {dim, width},
                    join("output of ", o.heads(), " heads of ", o.dim_head()));
  links.push_back({"",
                   {},
                   "the identity, without bias",
                   {ours + "out.weight", ours + "out.bias"},
                   [dim](const at::Tensor&) {
                     return std::vector{at::eye(dim), at::zeros({dim})};
                   },
                   {},
                   {}});
}

void check_layer(const AttentionOptions& o) {
  const Position& p = o.position();
  const auto refuse = [](bool wrong, const auto&... what) {
    require(!wrong, "authors' weights: their code has no ", what...);
  };
  refuse(o.qkv_bias(), "bias on q, k and v");
  refuse(bool(o.relation()), "relations");
  refuse(!o.grid().empty() && o.grid().size() != (o.causal() ? 1 : 2),
         "layer on such a grid; expected a causal sequence or a 2-dimensional grid, got ",
         times(o.grid()), o.causal() ? " causal" : "");
  if (!p.uses_offsets()) {
    refuse(!p.shares_qkv(), "Translution without relative roles; expected some of q, k, v");
    return;
  }
  const bool alpha = p.method == Method::alpha_translution;
  refuse(p.method != Method::translution && !alpha, name_of(kMethods, p.method),
         "; expected self_attention, rotary, alpha_translution or translution");
  refuse(p.encoding != Encoding::relative, "matrices per token pair (encoding absolute)");
  refuse(p.sharing != Sharing::none, "offsets that share a slot (sharing ",
         name_of(kSharings, p.sharing), ")");
  refuse(!o.causal() && !o.cls(), "tables without a class token's rows");
  refuse(alpha && !p.shared_qkv, "low-rank layer without shared q, k, v (shared_qkv off)");
  refuse(alpha && p.relative_out() != p.relative_dim, "relative_dim_out other than relative_dim");
  refuse(alpha && p.mixing != Mixing::mean,
         "sum of the shared and the relative part: it averages them (mixing mean)");
}

// True for "rope" or "rope_tiny", not "rope_former". Their code has rotary tables for it but does
// not use them.
bool is_rope(const std::string& family) {
  return family == "rope" ||
         (is_authors_model(family) && family.substr(0, family.rfind('_')) == "rope");
}

void add_layer(Links& links, const std::string& theirs, const std::string& norm,
               const std::string& ours, const AttentionOptions& o, const std::string& family) {
  check_layer(o);
  add_norm(links, theirs + "norm", norm, o.dim());
  if (o.causal()) links.push_back(causal_mask(theirs, o.grid().front()));
  const bool full = o.position().method == Method::translution;
  if (o.position().rotates() || (full && is_rope(family))) add_rotation(links, theirs, o);
  if (full)
    add_full(links, theirs, ours, o);
  else if (o.position().method == Method::alpha_translution)
    add_low_rank(links, theirs, ours, o);
  else
    add_shared(links, theirs, ours, o, {false, false, false});
  add_projection(links, theirs, ours, o);
}

// ------------------------------------------------------------------------------------- model

void add_backbone(Links& links, const std::string& theirs, const ModelOptions& o,
                  const std::string& family) {
  const auto& a = o.architecture;
  add_norm(links, theirs + ".norm", "backbone.norm", a.dim);
  for (int64_t layer = 0; layer < a.depth; ++layer) {
    const std::string from = join(theirs, ".layers.", layer, "."),
                      to = join("backbone.blocks.", layer, ".");
    add_layer(links, from + "0.", to + "norm1", to + "attention.", o.attention(layer), family);
    const std::string meaning = join("an MLP of ", a.dim, " and ", a.mlp_dim, " channels");
    add_norm(links, from + "1.net.0", to + "norm2", a.dim);
    add_pair(links, from + "1.net.1", to + "mlp.up", {a.mlp_dim, a.dim}, meaning);
    add_pair(links, from + "1.net.4", to + "mlp.down", {a.dim, a.mlp_dim}, meaning);
  }
}

const char* root_of(const ModelOptions& o) {
  return o.position.shares_qkv() ? "transformer" : "translution";
}

void add_vit(Links& links, const ModelOptions& o, const std::string& family) {
  const int64_t dim = o.architecture.dim, patch = o.channels * o.patch_size * o.patch_size;
  const std::string patches = join("patches of ", o.channels, "x", o.patch_size, "x", o.patch_size);
  links.push_back(same("cls_token", {1, 1, dim}, "the class token", "cls_token", {dim}));
  if (o.embeds_input())
    links.push_back(same("pos_embedding", {1, o.tokens(), dim},
                         join("a vector for each of ", o.tokens(), " tokens"), "position_embedding",
                         {o.tokens(), dim}));
  add_norm(links, "to_patch_embedding.1", "patch_norm", patch);
  add_pair(links, "to_patch_embedding.2", "patch_embed", {dim, patch}, patches);
  add_norm(links, "to_patch_embedding.3", "embed_norm", dim);
  add_backbone(links, root_of(o), o, family);
  add_pair(links, "mlp_head", "head", {o.classes, dim}, join(o.classes, " classes"));
}

void add_gpt(Links& links, const ModelOptions& o, const std::string& family) {
  const std::vector<int64_t> words = {o.vocabulary, o.architecture.dim},
                             positions = {o.length, o.architecture.dim};
  const std::string vocabulary = join("a vocabulary of ", o.vocabulary);
  links.push_back(same("wte.weight", words, vocabulary, "token_embedding.weight", words));
  if (o.embeds_input())
    links.push_back(same("wpe.weight", positions,
                         join("a vector for each of ", o.length, " tokens"), "position_embedding",
                         positions));
  add_backbone(links, root_of(o), o, family);
  add_norm(links, "norm", "head_norm", o.architecture.dim);
  links.push_back(same("output_head.weight", words, vocabulary, "head.weight", words));
}

}  // namespace

Links authors_links(const ModelOptions& o, const std::string& family) {
  o.check();
  require(o.extra_norms && o.gelu == Gelu::exact,
          "authors' weights: expected extra_norms on and gelu exact, as in their code");
  require(o.family == Family::gpt || o.pooling == Pooling::cls,
          "authors' weights: expected pooling cls; with pooling mean their code has a class token "
          "and ours has none");
  Links links;
  if (o.family == Family::vit)
    add_vit(links, o, family);
  else
    add_gpt(links, o, family);
  return links;
}

Links authors_links(const AttentionOptions& layer, const std::string& family) {
  attention_parameters(layer);  // throws on invalid options
  Links links;
  add_layer(links, "", "norm", "attention.", layer, family);
  return links;
}

}  // namespace translution
