#include <ATen/ATen.h>

#include <regex>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/weights/baselines.h"
#include "translution/weights/link.h"
#include "translution/weights/sizes.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kDimHead = 64;

// Removes the prefix "transformer.", masks and the tied head.
NamedTensors strip(const NamedTensors& tensors, const std::string& source) {
  static const std::regex mask(R"(h\.\d+\.attn\.(masked_)?bias)");
  const std::string prefix = "transformer.";
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) {
    const auto bare = name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
    if (!std::regex_match(bare, mask)) result[bare] = tensor;
  }
  const auto head = result.find("lm_head.weight"), words = result.find("wte.weight");
  if (head == result.end() || words == result.end()) return result;
  ensure(at::equal(head->second, words->second), source,
         ": 'lm_head.weight' differs from 'wte.weight'; GPT-2 ties the two");
  result.erase(head);
  return result;
}

ModelOptions read_options(const NamedTensors& tensors, const std::string& source) {
  const auto words = sizes_of(tensors, "wte.weight", 2, source);
  const auto positions = sizes_of(tensors, "wpe.weight", 2, source);
  const auto hidden = sizes_of(tensors, "h.0.mlp.c_fc.weight", 2, source);
  const int64_t dim = words[1];
  ensure(dim % kDimHead == 0, source, ": expected a multiple of ", kDimHead,
         " channels (GPT-2's heads), got ", dim);
  ModelOptions options;
  options.family = Family::gpt;
  options.architecture =
      architecture_of(count_layers(tensors, "h."), dim, dim / kDimHead, hidden[1], kDimHead);
  options.length = positions[0];
  options.vocabulary = words[0];
  options.position.method = Method::self_attention;
  options.extra_norms = false;
  options.qkv_bias = true;
  options.gelu = Gelu::tanh;
  return options;
}

// Their Conv1D holds [in, out] and a bias.
void add_conv1d(Links& links, const std::string& theirs, const std::string& ours, int64_t in,
                int64_t out, const std::string& meaning) {
  links.push_back(stacked(theirs + ".weight", out, {in}, meaning, {ours + ".weight"}));
  links.push_back(same(theirs + ".bias", {out}, meaning, ours + ".bias", {out}));
}

void add_block(Links& links, const std::string& theirs, const std::string& ours,
               const Architecture& a) {
  const std::vector<int64_t> widths(3, a.dim);
  const std::string to = ours + "attention.";
  add_pair(links, theirs + "ln_1", ours + "norm1", {a.dim}, "a norm");
  links.push_back(side_by_side(theirs + "attn.c_attn.weight", {a.dim, 3 * a.dim}, widths,
                               "q, k and v", {to + "query", to + "key", to + "value"}));
  links.push_back(side_by_side(theirs + "attn.c_attn.bias", {3 * a.dim}, widths, "q, k and v",
                               {to + "query_bias", to + "key_bias", to + "value_bias"}));
  add_conv1d(links, theirs + "attn.c_proj", to + "out", a.dim, a.dim, "output of the heads");
  add_pair(links, theirs + "ln_2", ours + "norm2", {a.dim}, "a norm");
  add_conv1d(links, theirs + "mlp.c_fc", ours + "mlp.up", a.dim, a.mlp_dim, "the MLP");
  add_conv1d(links, theirs + "mlp.c_proj", ours + "mlp.down", a.mlp_dim, a.dim, "the MLP");
}

Links gpt2_links(const ModelOptions& o) {
  const auto& a = o.architecture;
  const std::vector<int64_t> positions = {o.length, a.dim};
  Links links = {
      {"wte.weight",
       {o.vocabulary, a.dim},
       "the vocabulary",
       {"token_embedding.weight", "head.weight"},
       [](const at::Tensor& t) {
         return std::vector{t, t};
       },
       {},
       {}},
      same("wpe.weight", positions, "the position embedding", "position_embedding", positions)};
  for (int64_t layer = 0; layer < a.depth; ++layer)
    add_block(links, join("h.", layer, "."), join("backbone.blocks.", layer, "."), a);
  add_pair(links, "ln_f", "backbone.norm", {a.dim}, "a norm");
  return links;
}

}  // namespace

ConvertedModel from_gpt2(const NamedTensors& tensors, const std::string& source) {
  const auto theirs = strip(tensors, source);
  const auto options = read_options(theirs, source);
  return {options, to_ours(gpt2_links(options), theirs, source)};
}

}  // namespace translution
