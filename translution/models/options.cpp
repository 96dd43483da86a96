#include "translution/models/options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "translution/core/error.h"
#include "translution/core/names.h"
#include "translution/core/settings.h"
#include "translution/models/authors.h"
#include "translution/ops/runtime.h"

namespace translution {

using namespace detail;

namespace {

// Larger sizes are typing errors, and their products overflow.
constexpr int64_t kMaxSize = int64_t{1} << 30, kMaxDepth = 1 << 14;

// Parses the digits after "vit-a/" or "gpt-a-".
int64_t parse_size(const std::string& name, const std::string& digits) {
  const bool number = !digits.empty() && digits.size() <= 6 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  require(number && std::stoll(digits) > 0, "model '", name,
          "': expected a number from 1 to 999999 ",
          "after the architecture, as in vit-a/12 or gpt-a-160, got '", digits, "'");
  return std::stoll(digits);
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {
      {"a", 6, 192, 3, 768, 64},         {"b", 12, 192, 3, 768, 64},
      {"c", 12, 384, 6, 1536, 64},       {"base", 12, 768, 12, 3072, 64},
      {"large", 24, 1024, 16, 4096, 64}, {"tiny", 2, 48, 3, 96, 16},
  };
  return all;
}

std::optional<Architecture> find_architecture(const std::string& name) {
  for (const auto& architecture : architectures())
    if (architecture.name == name) return architecture;
  if (name.empty() || name.find_first_not_of("0123456789x") != std::string::npos)
    return std::nullopt;
  const auto sides = SettingValue{"architecture", name}.grid();
  if (sides.size() < 4 || sides.size() > 5) return std::nullopt;
  const int64_t heads = std::max<int64_t>(sides[2], 1);
  return Architecture{name,     sides[0], sides[1],
                      sides[2], sides[3], sides.size() == 5 ? sides[4] : sides[1] / heads};
}

Architecture architecture_of(int64_t depth, int64_t dim, int64_t heads, int64_t mlp_dim,
                             int64_t dim_head) {
  for (const auto& a : architectures())
    if (a.depth == depth && a.dim == dim && a.heads == heads && a.mlp_dim == mlp_dim &&
        a.dim_head == dim_head)
      return a;
  std::vector sides = {depth, dim, heads, mlp_dim, dim_head};
  if (heads > 0 && dim == heads * dim_head) sides.pop_back();
  return {times(sides), depth, dim, heads, mlp_dim, dim_head};
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const char* family : {"vit-", "gpt-"})
    for (const auto& architecture : architectures()) names.push_back(family + architecture.name);
  for (const auto& name : authors_model_names()) names.push_back(name);
  return names;
}

ModelOptions ModelOptions::named(const std::string& name) {
  if (is_authors_model(name)) return authors_model(name);
  ModelOptions options;
  const bool gpt = name.rfind("gpt-", 0) == 0, vit = name.rfind("vit-", 0) == 0;
  options.family = gpt ? Family::gpt : Family::vit;
  const size_t end = name.find(gpt ? '-' : '/', 4);
  const std::string stem = name.substr(0, end);
  if (const auto found = find_architecture(gpt || vit ? stem.substr(4) : "")) {
    options.architecture = *found;
    if (end != std::string::npos)
      (gpt ? options.length : options.patch_size) = parse_size(name, name.substr(end + 1));
    return options;
  }
  const auto near = near_name(stem, model_names());
  throw std::invalid_argument(
      join("unknown model '", name, "'; ",
           near ? join("did you mean '", *near, "'? Append a patch size or length: ")
                : "expected an architecture with a patch size or length after it, as in ",
           "vit-a/12, gpt-a-160"));
}

std::string ModelOptions::name() const {
  return family == Family::vit ? join("vit-", architecture.name, "/", patch_size)
                               : join("gpt-", architecture.name, "-", length);
}

std::vector<int64_t> ModelOptions::grid() const {
  if (family == Family::gpt) return {length};
  std::vector<int64_t> sides;
  for (const int64_t side : image_size) sides.push_back(side / patch_size);
  return sides;
}

int64_t ModelOptions::tokens() const { return count_tokens({grid(), has_cls(), is_causal()}); }

AttentionOptions ModelOptions::attention(int64_t layer) const {
  Position position_of_layer = position;
  if (layer >= hybrid_layers.value_or(architecture.depth)) {
    position_of_layer = Position();
    position_of_layer.method = rest;
    position_of_layer.angles = position.angles;
  }
  return AttentionOptions(architecture.dim)
      .heads(architecture.heads)
      .dim_head(architecture.dim_head)
      .grid(grid())
      .cls(has_cls())
      .causal(is_causal())
      .position(position_of_layer)
      .qkv_bias(qkv_bias)
      .dropout(dropout)
      .init(init)
      .workspace(workspace.value_or(runtime().workspace()))
      .precision(precision);
}

void ModelOptions::check() const {
  const auto positive = [](const char* what, int64_t value) {
    require(value > 0 && value <= kMaxSize, "model: expected ", what, " of 1 to ", kMaxSize,
            ", got ", value);
  };
  require(architecture.depth > 0 && architecture.depth <= kMaxDepth,
          "model: expected depth of 1 to ", kMaxDepth, ", got ", architecture.depth);
  positive("dim", architecture.dim);
  positive("heads", architecture.heads);
  positive("dim_head", architecture.dim_head);
  positive("mlp_dim", architecture.mlp_dim);
  require(std::isfinite(dropout) && dropout >= 0 && dropout < 1,
          "model: expected a dropout probability in [0, 1), got ", dropout);
  require(std::isfinite(norm_eps) && norm_eps >= 0 && norm_eps < 1,
          "model: expected a norm_eps in [0, 1), got ", norm_eps);
  const int64_t hybrid = hybrid_layers.value_or(architecture.depth);
  require(hybrid >= 0 && hybrid <= architecture.depth, "model: expected 0 to ", architecture.depth,
          " hybrid layers (the depth), got ", hybrid);
  require(rest == Method::self_attention_no_pos || rest == Method::rotary,
          "model: expected self_attention_no_pos or rotary for the rest of a hybrid, got ",
          name_of(kMethods, rest));
  if (family == Family::vit) {
    require(image_size.size() == 2, "model: expected an image size of two sides, got ",
            times(image_size));
    positive("patch_size", patch_size);
    positive("channels", channels);
    positive("classes", classes);
    require(channels <= kMaxSize / patch_size / patch_size, "model: a patch of ", channels,
            " channels and ", patch_size, "x", patch_size, " pixels has more than ", kMaxSize,
            " values");
    for (const int64_t side : image_size)
      require(side > 0 && side % patch_size == 0, "model: an image of ", times(image_size),
              " pixels does not divide into patches of ", patch_size, "x", patch_size);
  } else {
    positive("length", length);
    positive("vocabulary", vocabulary);
  }
  position.check();
  tokens();
}

}  // namespace translution
