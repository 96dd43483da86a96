#include <ATen/ATen.h>

#include <cmath>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/weights/baselines.h"
#include "translution/weights/link.h"
#include "translution/weights/sizes.h"

namespace translution {

using namespace detail;

namespace {

constexpr double kEps = 1e-6;

// Parts of tensor names, and the features of a model that they show. Our ViT has none of these.
constexpr std::pair<const char*, const char*> kUnsupported[] = {
    {"dist_token", "a distillation token"},
    {"head_dist", "a second head for distillation"},
    {"reg_token", "register tokens"},
    {"norm_pre", "a norm before the first block"},
    {"fc_norm", "a norm after the average of the patches"},
    {"pre_logits", "a layer between the last norm and the head"},
    {"attn_pool", "attention that pools the tokens"},
    {".ls1", "layer scale"},
    {"gamma_1", "layer scale"},
    {"q_norm", "norms of queries and keys"},
    {"attn.norm", "a norm inside attention"},
    {"rel_pos", "relative positions of another kind"},
    {"relative_position", "relative positions of another kind"},
    {"fc1_g", "a gated MLP"},
    {"fc1_x", "a gated MLP"},
};

void check_supported(const NamedTensors& tensors, const std::string& source) {
  for (const auto& [name, tensor] : tensors)
    for (const auto& [part, what] : kUnsupported)
      ensure(name.find(part) == std::string::npos, source, ": ", in_quotes(name),
             " belongs to a model with ", what, ", which our ViT does not have");
}

// The file does not store the number of heads. Heads have 64 channels, except for the huge model
// (1280 channels), which has 16 heads.
int64_t heads_of(int64_t dim, const std::string& source) {
  if (dim == 1280) return 16;
  ensure(dim % 64 == 0 && dim <= 1024, source,
         ": expected a multiple of 64 channels up to 1024, or 1280, got ", dim,
         "; the file does not store the number of heads");
  return dim / 64;
}

ModelOptions read_options(const NamedTensors& tensors, const std::string& source) {
  check_supported(tensors, source);
  const auto patches = sizes_of(tensors, "patch_embed.proj.weight", 4, source);
  const auto positions = sizes_of(tensors, "pos_embed", 3, source);
  const auto hidden = sizes_of(tensors, "blocks.0.mlp.fc1.weight", 2, source);
  const auto head = sizes_of(tensors, "head.weight", 2, source);
  const int64_t dim = patches[0];
  const auto side = std::llround(std::sqrt(static_cast<double>(positions[1] - 1)));
  ensure(patches[2] == patches[3] && side > 0 && side * side + 1 == positions[1], source,
         ": expected a square image with a class token, got ", positions[1],
         " positions and patches of ", patches[2], "x", patches[3]);
  const int64_t heads = heads_of(dim, source);
  ModelOptions options;
  options.architecture =
      architecture_of(count_layers(tensors, "blocks."), dim, heads, hidden[0], dim / heads);
  options.patch_size = patches[2];
  options.channels = patches[1];
  options.image_size = {side * patches[2], side * patches[2]};
  options.classes = head[0];
  options.position.method = Method::self_attention;
  options.extra_norms = false;
  options.qkv_bias = tensors.count("blocks.0.attn.qkv.bias") == 1;
  options.norm_eps = kEps;
  return options;
}

void add_block(Links& links, const std::string& theirs, const std::string& ours,
               const ModelOptions& o) {
  const auto& a = o.architecture;
  const std::vector<int64_t> widths(3, a.dim);
  const std::string to = ours + "attention.";
  add_pair(links, theirs + "norm1", ours + "norm1", {a.dim}, "a norm");
  links.push_back(stacked(theirs + "attn.qkv.weight", a.dim, widths, "q, k and v",
                          {to + "query", to + "key", to + "value"}));
  if (o.qkv_bias)
    links.push_back(side_by_side(theirs + "attn.qkv.bias", {3 * a.dim}, widths, "q, k and v",
                                 {to + "query_bias", to + "key_bias", to + "value_bias"}));
  add_pair(links, theirs + "attn.proj", to + "out", {a.dim, a.dim}, "output of the heads");
  add_pair(links, theirs + "norm2", ours + "norm2", {a.dim}, "a norm");
  add_pair(links, theirs + "mlp.fc1", ours + "mlp.up", {a.mlp_dim, a.dim}, "the MLP");
  add_pair(links, theirs + "mlp.fc2", ours + "mlp.down", {a.dim, a.mlp_dim}, "the MLP");
}

// Their patch embedding is a convolution [dim, channels, P, P], ours a matrix
// [dim, P * P * channels].
Link patch_link(const ModelOptions& o) {
  const int64_t dim = o.architecture.dim, P = o.patch_size, C = o.channels;
  return rearranged(
      "patch_embed.proj.weight", {dim, C, P, P}, "the patch embedding", "patch_embed.weight",
      [=](const at::Tensor& t) {
        return t.permute({0, 2, 3, 1}).reshape({dim, P * P * C});
      },
      [=](const at::Tensor& t) {
        return t.view({dim, P, P, C}).permute({0, 3, 1, 2});
      });
}

Links timm_links(const ModelOptions& o) {
  const int64_t dim = o.architecture.dim, N = o.tokens();
  Links links = {
      same("cls_token", {1, 1, dim}, "the class token", "cls_token", {dim}),
      same("pos_embed", {1, N, dim}, "the position embedding", "position_embedding", {N, dim}),
      patch_link(o),
      same("patch_embed.proj.bias", {dim}, "the patch embedding", "patch_embed.bias", {dim}),
  };
  for (int64_t layer = 0; layer < o.architecture.depth; ++layer)
    add_block(links, join("blocks.", layer, "."), join("backbone.blocks.", layer, "."), o);
  add_pair(links, "norm", "backbone.norm", {dim}, "a norm");
  add_pair(links, "head", "head", {o.classes, dim}, "the head");
  return links;
}

}  // namespace

ConvertedModel from_timm(const NamedTensors& tensors, const std::string& source) {
  const auto options = read_options(tensors, source);
  return {options, to_ours(timm_links(options), tensors, source)};
}

}  // namespace translution
