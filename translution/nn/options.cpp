#include "translution/nn/options.h"

#include <algorithm>
#include <limits>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

// Keeps heads * dim_head and heads * relative_dim far from overflow.
constexpr int64_t kMaxWidth = int64_t{1} << 30;

int64_t slot_count(const AttentionOptions& o) {
  return o.relation() ? o.relation()->num_slots()
                      : count_slots(o.position().offsets(o.grid(), o.cls(), o.causal()));
}

// Features of an offset: its coordinates, its squared length and, with a class token, one per slot
// of the class token.
int64_t position_feature_count(const AttentionOptions& options) {
  return static_cast<int64_t>(options.grid().size()) + 1 + (options.cls() ? 3 : 0);
}

void check_options(const AttentionOptions& o) {
  require(o.dim() > 0, "attention: expected dim of 1 or more, got ", o.dim());
  require(o.heads() > 0, "attention: expected one or more heads, got ", o.heads());
  require(o.dim_head() > 0, "attention: expected dim_head of 1 or more, got ", o.dim_head());
  const bool alpha = o.position().method == Method::alpha_translution;
  const int64_t small = std::max(o.position().relative_dim, o.position().relative_dim_out);
  const int64_t widest = alpha ? std::max(o.dim_head(), small) : o.dim_head();
  require(o.dim() <= kMaxWidth && o.heads() <= kMaxWidth / widest, "attention: expected at most ",
          kMaxWidth, " channels, got dim ", o.dim(), " and ", o.heads(), " heads of ", widest);
  require(o.dropout() >= 0 && o.dropout() < 1,
          "attention: expected a dropout probability in [0, 1), got ", o.dropout());
  require(o.workspace() >= 0, "attention: expected a workspace of 0 or more bytes, got ",
          o.workspace());
  o.position().check();
  require(!o.qkv_bias() || o.position().takes_qkv_bias(), "attention: qkv_bias needs W^q, W^k, ",
          "W^v, got ", name_of(kMethods, o.position().method), alpha ? " without shared_qkv" : "");
  if (!o.relation()) {
    if (!takes_any_length(o)) count_tokens({o.grid(), o.cls(), o.causal()});
    return;
  }
  require(o.position().method != Method::gated_position,
          "attention: gated_position needs the offsets of a grid, not a relation");
  require(!o.position().rotates(),
          "attention: rotary needs the coordinates of a grid, not a relation");
}

// The matrix of a role, or one per slot. The last row of a matrix with a slot is its bias.
void add_role(std::vector<ParameterSpec>& specs, const AttentionOptions& o, const char* name,
              bool relative, int64_t slots) {
  const int64_t width = o.heads() * o.dim_head();
  if (relative)
    specs.push_back({name, {slots, o.dim() + (o.qkv_bias() ? 1 : 0), width}, o.dim(), true});
  else
    specs.push_back({name, {o.dim(), width}, o.dim()});
}

void add_alpha(std::vector<ParameterSpec>& specs, const AttentionOptions& o, int64_t slots,
               int64_t width) {
  const Position& p = o.position();
  const int64_t small = p.relative_dim * o.heads(), small_out = p.relative_out() * o.heads();
  if (small == 0) return;
  const auto role = [&](const char* down, const char* table, bool relative) {
    specs.push_back({down, {o.dim(), relative ? small : small_out}, o.dim()});
    if (relative) specs.push_back({table, {slots, small, small_out}, small, true});
  };
  if (p.roles.q || p.roles.k || !p.shared_qkv) {
    role("query_down", "query_offsets", p.roles.q);
    role("key_down", "key_offsets", p.roles.k);
  }
  if (p.roles.v || !p.shared_qkv) {
    role("value_down", "value_offsets", p.roles.v);
    specs.push_back({"value_up", {small_out, width}, small_out});
  }
}

// Leaves the rows of the part in the tables that are split.
void keep_part(std::vector<ParameterSpec>& specs, SlotPart part) {
  for (ParameterSpec& spec : specs)
    if (spec.is_split()) spec.shape[0] = count_slots(spec.shape[0], part);
}

}  // namespace

AttentionOptions grid_options(AttentionOptions options, const PointOptions& points) {
  options.grid(std::vector<int64_t>(points.lattice_axes(), points.radius + 1));
  auto position = options.position();
  position.sharing = Sharing::none;
  position.radius = 0;
  position.kernel_size = 2 * points.radius + 1;
  return options.position(position);
}

int64_t AttentionOptions::dim_head() const {
  if (dim_head_) return *dim_head_;
  require(heads_ > 0 && dim_ % heads_ == 0, "attention: dim ", dim_, " does not divide into ",
          heads_, " heads; set dim_head, the channels per head");
  return dim_ / heads_;
}

bool takes_any_length(const AttentionOptions& o) {
  return o.grid().empty() && !o.relation() && !o.position().uses_offsets() &&
         !o.position().rotates();
}

int64_t ParameterSpec::count() const {
  int64_t product = 1;
  for (const int64_t side : shape) {
    require(side == 0 || product <= std::numeric_limits<int64_t>::max() / side, "parameter ", name,
            " of shape ", times(shape), " is too large to count");
    product *= side;
  }
  return product;
}

std::vector<ParameterSpec> attention_parameters(const AttentionOptions& o) {
  check_options(o);
  const Position& p = o.position();
  const int64_t slots = p.uses_offsets() ? slot_count(o) : 0;
  const int64_t width = o.heads() * o.dim_head();
  std::vector<ParameterSpec> specs;
  if (p.method == Method::convolution) {
    add_role(specs, o, "kernel", true, slots);
    keep_part(specs, o.share().part);
    return specs;
  }
  const bool full = p.method == Method::translution;
  const std::pair<std::string, bool> roles[] = {
      {"query", full && p.roles.q}, {"key", full && p.roles.k}, {"value", full && p.roles.v}};
  if (p.method != Method::alpha_translution || p.shared_qkv)
    for (const auto& [name, relative] : roles) add_role(specs, o, name.c_str(), relative, slots);
  if (o.qkv_bias())
    for (const auto& [name, relative] : roles)
      if (!relative) specs.push_back({name + "_bias", {width}});
  if (p.method == Method::alpha_translution) add_alpha(specs, o, slots, width);
  if (p.method == Method::relative_key) specs.push_back({"key_vectors", {slots, width}, 0, true});
  if (p.method == Method::relative_value)
    specs.push_back({"value_vectors", {slots, width}, 0, true});
  if (p.method == Method::relative_bias) specs.push_back({"bias", {slots, o.heads()}, 0, true});
  if (p.method == Method::gated_position) {
    specs.push_back({"position_weight", {position_feature_count(o), o.heads()}});
    specs.push_back({"gate", {o.heads()}});
  }
  keep_part(specs, o.share().part);
  return specs;
}

}  // namespace translution
