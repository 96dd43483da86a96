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
constexpr int64_t kMaxSize = int64_t{1} << 30, kMaxDepth = 1 << 14, kMaxLatticeRadius = 64;

// Parses the digits after "vit-a/" or "gpt-a-".
int64_t parse_size(const std::string& name, const std::string& digits) {
  const bool number = !digits.empty() && digits.size() <= 6 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  require(number && std::stoll(digits) > 0, "model '", name,
          "': expected a number from 1 to 999999 ",
          "after the architecture, as in vit-a/12 or gpt-a-160, got '", digits, "'");
  return std::stoll(digits);
}

// The family that a name begins with, "vit" in "vit-a/12".
std::optional<Family> family_in(const std::string& name) {
  for (const auto& family : kFamilies)
    if (name.rfind(join(family.name, "-"), 0) == 0) return family.value;
  return std::nullopt;
}

// What to write instead of an unknown name without its size.
std::string name_advice(const std::string& stem) {
  const auto near = near_name(stem, model_names());
  if (!near)
    return "expected an architecture with a patch size or length after it, as in vit-a/12, "
           "gpt-a-160, or one for points, as in cloud-a";
  if (family_in(*near) == Family::cloud) return join("did you mean '", *near, "'?");
  return join("did you mean '", *near, "'? Append a patch size or length: vit-a/12, gpt-a-160");
}

}  // namespace

const std::vector<Architecture>& architectures(Family family) {
  static const std::vector<Architecture> all = {
      {"a", 6, 192, 3, 768, 64},         {"b", 12, 192, 3, 768, 64},
      {"c", 12, 384, 6, 1536, 64},       {"base", 12, 768, 12, 3072, 64},
      {"large", 24, 1024, 16, 4096, 64}, {"tiny", 2, 48, 3, 96, 16},
  };
  static const std::vector<Architecture> of_points = {
      {"a", 4, 96, 3, 192, 32},
      {"b", 8, 192, 6, 768, 32},
      {"tiny", 2, 24, 2, 48, 12},
  };
  return family == Family::cloud ? of_points : all;
}

std::optional<Architecture> find_architecture(const std::string& name, Family family) {
  for (const auto& architecture : architectures(family))
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
                             int64_t dim_head, Family family) {
  for (const auto& a : architectures(family))
    if (a.depth == depth && a.dim == dim && a.heads == heads && a.mlp_dim == mlp_dim &&
        a.dim_head == dim_head)
      return a;
  std::vector sides = {depth, dim, heads, mlp_dim, dim_head};
  if (heads > 0 && dim == heads * dim_head) sides.pop_back();
  return {times(sides), depth, dim, heads, mlp_dim, dim_head};
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& family : kFamilies)
    for (const auto& architecture : architectures(family.value))
      names.push_back(join(family.name, "-", architecture.name));
  for (const auto& name : authors_model_names()) names.push_back(name);
  return names;
}

ModelOptions ModelOptions::of_family(Family family) {
  ModelOptions options;
  options.family = family;
  options.architecture = architectures(family).front();
  if (family != Family::cloud) return options;
  options.channels = 1;
  options.classes = 10;
  options.position.sharing = Sharing::direction;
  options.position.radius = 2;
  return options;
}

ModelOptions ModelOptions::named(const std::string& name) {
  if (is_authors_model(name)) return authors_model(name);
  const auto family = family_in(name);
  const size_t begin = name.find('-') + 1;
  const size_t end = name.find(family && *family != Family::vit ? '-' : '/', begin);
  const std::string stem = name.substr(0, end);
  const auto found = family ? find_architecture(stem.substr(begin), *family) : std::nullopt;
  if (!found) throw std::invalid_argument(join("unknown model '", name, "'; ", name_advice(stem)));
  auto options = of_family(*family);
  options.architecture = *found;
  if (end == std::string::npos) return options;
  require(family != Family::cloud, "model '", name, "': expected ", stem,
          "; clouds have any number of points");
  (family == Family::gpt ? options.length : options.patch_size) =
      parse_size(name, name.substr(end + 1));
  return options;
}

std::string ModelOptions::name() const {
  switch (family) {
    case Family::vit:
      return join("vit-", architecture.name, "/", patch_size);
    case Family::gpt:
      return join("gpt-", architecture.name, "-", length);
    case Family::cloud:
      break;
  }
  return join("cloud-", architecture.name);
}

std::vector<int64_t> ModelOptions::grid() const {
  if (family == Family::cloud) return {};
  if (family == Family::gpt) return {length};
  std::vector<int64_t> sides;
  for (const int64_t side : image_size) sides.push_back(side / patch_size);
  return sides;
}

int64_t ModelOptions::tokens() const {
  if (family == Family::cloud) return points + (has_cls() ? 1 : 0);
  return count_tokens({grid(), has_cls(), is_causal()});
}

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
      .precision(precision)
      .share(share);
}

PointOptions ModelOptions::lattice() const {
  PointOptions lattice;
  lattice.axes = axes;
  lattice.spacing = {spacing.value_or(0)};
  lattice.radius = position.radius;
  lattice.neighbours = neighbours;
  lattice.cutoff = cutoff;
  const bool drops = position.sharing == Sharing::window || position.method == Method::convolution;
  lattice.beyond = drops ? Beyond::dropped : Beyond::border;
  lattice.distances = distances;
  return lattice;
}

AttentionOptions ModelOptions::table_options(int64_t layer) const {
  return family == Family::cloud ? grid_options(attention(layer), lattice()) : attention(layer);
}

namespace {

void check_cloud(const ModelOptions& o) {
  const auto& p = o.position;
  require(o.share.part.count == 1, "model: expected images or text to split tables between ",
          "processes, got points; use data-parallel training");
  require(o.axes >= 1 && o.axes <= 3, "model: expected axes of 1, 2 or 3, got ", o.axes);
  require(p.radius >= 1 && p.radius <= kMaxLatticeRadius, "model: expected a radius of 1 to ",
          kMaxLatticeRadius, " lattice points to each side, got ", p.radius);
  require(!o.spacing || (std::isfinite(*o.spacing) && *o.spacing > 0),
          "model: expected a positive spacing in the unit of the positions, got ", *o.spacing);
  require(o.neighbours >= 0 && o.neighbours <= kMaxSize,
          "model: expected neighbours of 0 (all) or more, got ", o.neighbours);
  require(std::isfinite(o.cutoff) && o.cutoff >= 0, "model: expected a cutoff of 0 (any) or more, ",
          "got ", o.cutoff);
  require(p.sharing == Sharing::direction || p.sharing == Sharing::window,
          "model: points need sharing direction, which moves an offset beyond the lattice to its ",
          "border, or window, which drops the pair; got ", name_of(kSharings, p.sharing));
  require(p.method != Method::gated_position && !p.rotates() && o.rest != Method::rotary &&
              p.encoding == Encoding::relative,
          "model: gated_position, rotary position and absolute encoding need a grid; points have ",
          "none");
  require(std::isfinite(o.target_mean) && std::isfinite(o.target_scale) && o.target_scale > 0,
          "model: expected a finite target-mean and a positive target-scale, got ", o.target_mean,
          " and ", o.target_scale);
}

}  // namespace

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
  } else if (family == Family::gpt) {
    positive("length", length);
    positive("vocabulary", vocabulary);
  } else {
    positive("channels", channels);
    positive("points", points);
    if (classes != 0) positive("classes", classes);
    check_cloud(*this);
  }
  auto on_grid = position;
  if (family == Family::cloud)
    on_grid.sharing = Sharing::none;  // check_cloud checks that of points
  on_grid.check();
  tokens();
}

}  // namespace translution
