#include "translution/ops/points.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <tuple>

#include "translution/ops/compat.h"
#include "translution/ops/point_pairs.h"
#include "translution/ops/point_taps.h"

namespace translution {
namespace {

constexpr const char* kPoints = "points";

void check_rows(const at::Tensor& x, const at::Tensor& positions, int64_t dim, int64_t axes) {
  TORCH_CHECK(x.defined() && positions.defined(), kPoints, ": x or positions are missing");
  TORCH_CHECK(x.dim() == 2 || x.dim() == 3, kPoints, ": x must be [B, N, ", dim, "] or packed [R, ",
              dim, "], got ", x.sizes());
  TORCH_CHECK(x.size(-1) == dim, kPoints, ": x must have ", dim, " channels, got ", x.size(-1));
  TORCH_CHECK(positions.dim() == x.dim() && positions.size(-1) == axes &&
                  positions.sizes().slice(0, x.dim() - 1) == x.sizes().slice(0, x.dim() - 1),
              kPoints, ": x is ", x.sizes(), " and positions are ", positions.sizes(),
              "; expected ", axes, axes == 1 ? " coordinate" : " coordinates", " for every token");
  TORCH_CHECK(at::isFloatingType(positions.scalar_type()), kPoints,
              ": positions must be floating-point numbers, got ", positions.scalar_type(),
              "; convert them");
}

void check_mask(const at::Tensor& mask, int64_t clouds, int64_t tokens) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, kPoints,
              ": the mask must be bool, true for a token, got ", mask.scalar_type(),
              "; convert it, such as mask != 0");
  TORCH_CHECK(mask.dim() == 2 && mask.size(0) == clouds && mask.size(1) == tokens, kPoints,
              ": the mask must be [", clouds, ", ", tokens, "], got ", mask.sizes());
}

void check_batch(const at::Tensor& batch, int64_t rows) {
  TORCH_CHECK(batch.scalar_type() == at::kLong && batch.dim() == 1 && batch.size(0) == rows,
              kPoints, ": batch must be int64 [", rows, "], got ", batch.scalar_type(), " ",
              batch.sizes());
  TORCH_CHECK(rows == 0 || (batch.slice(0, 1).ge(batch.slice(0, 0, -1)).all().item<bool>() &&
                            batch[0].item<int64_t>() >= 0),
              kPoints,
              ": batch must ascend from 0 or more: the rows of a cloud stand together; sort by "
              "batch");
}

// A cloud begins where its number differs from that of the row before.
at::Tensor first_rows(const at::Tensor& batch) {
  const auto begins = batch.slice(0, 1).ne(batch.slice(0, 0, -1)).nonzero().select(1, 0) + 1;
  const int64_t rows = batch.size(0);
  if (rows == 0) return at::zeros({1}, batch.options());
  return at::cat({at::zeros({1}, batch.options()), begins, at::full({1}, rows, batch.options())});
}

void check_given(const char* name, const at::Tensor& index, int64_t tokens) {
  TORCH_CHECK(index.scalar_type() == at::kLong && index.dim() == 1, kPoints, ": ", name,
              " of the pairs must be int64 [E], got ", index.scalar_type(), " ", index.sizes());
  if (index.numel() == 0) return;
  const auto [low, high] = index.aminmax();
  const int64_t least = low.item<int64_t>(), most = high.item<int64_t>();
  TORCH_CHECK(least >= 0 && most < tokens, kPoints, ": ", name, " of the pairs must be 0 to ",
              tokens - 1, ", the tokens, got ", least < 0 ? least : most);
}

// The caller's pairs, sorted by query and then by key.
std::pair<at::Tensor, at::Tensor> sort_given(const at::Tensor& query, const at::Tensor& key,
                                             const at::Tensor& first) {
  const int64_t tokens = first[-1].item<int64_t>();
  TORCH_CHECK(key.defined(), kPoints, ": the pairs have no key");
  check_given("query", query, tokens);
  check_given("key", key, tokens);
  TORCH_CHECK(query.size(0) == key.size(0), kPoints, ": the pairs have ", query.size(0),
              " queries and ", key.size(0), " keys");
  const auto cloud = at::searchsorted(first, at::stack({query, key}), /*out_int32=*/false,
                                      /*right=*/true);
  const auto across = cloud[0].ne(cloud[1]);
  if (across.any().item<bool>()) {
    const int64_t pair = across.to(at::kByte).argmax().item<int64_t>();
    TORCH_CHECK(false, kPoints, ": pair ", pair, " joins the tokens ", query[pair].item<int64_t>(),
                " and ", key[pair].item<int64_t>(), " of different clouds");
  }
  const auto order = std::get<1>((query * tokens + key).sort());
  return {query.index_select(0, order), key.index_select(0, order)};
}

// The offset of each pair [E,axes], in double, or its distance [E,1].
at::Tensor offsets_of(const at::Tensor& positions, const PairList& list, bool distances) {
  const auto at = positions.to(at::kDouble);
  const auto offsets = at.index_select(0, list.query) - at.index_select(0, list.key);
  return distances ? offsets.norm(2, {1}, /*keepdim=*/true) : offsets;
}

// The pairs whose offset lies on the lattice, and those of class tokens.
void drop_far(const at::Tensor& positions, const at::Tensor& spacing, const PointRule& rule,
              const at::Tensor& special, PairList& list) {
  const auto u =
      offsets_of(positions.detach(), list, rule.distances) / spacing.detach().to(at::kDouble);
  auto near = u.abs().le(static_cast<double>(rule.radius)).all(1);
  if (special.defined())
    near = near.logical_or(special.index_select(0, list.query))
               .logical_or(special.index_select(0, list.key));
  list.query = list.query.index({near}), list.key = list.key.index({near});
}

// Taps of pairs by their distance: those of points on a line, two for each pair, the first of
// which is as far from the second, at 0, as the pair is apart.
std::pair<at::Tensor, at::Tensor> distance_taps(const at::Tensor& positions,
                                                const at::Tensor& spacing, const PairList& list,
                                                int64_t radius, const at::Tensor& special) {
  const auto apart = offsets_of(positions, list, /*distances=*/true);
  const auto line = at::cat({apart, at::zeros_like(apart)});
  const int64_t pairs = list.query.size(0);
  const auto query = at::arange(pairs, list.query.options());
  const auto ends =
      special.defined() ? special.index_select(0, at::cat({list.query, list.key})) : at::Tensor();
  return point_taps(line, spacing, query, query + pairs, radius, ends);
}

// The first token of each cloud that has one.
at::Tensor class_tokens(const at::Tensor& positions, const at::Tensor& first) {
  const auto begin = first.slice(0, 0, -1);
  auto special = at::zeros({positions.size(0)}, positions.options().dtype(at::kBool));
  special.index_fill_(0, begin.index({begin < first.slice(0, 1)}), true);
  return special;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> pack_op(const at::Tensor& x,
                                                       const at::Tensor& positions,
                                                       const OptionalTensor& mask,
                                                       const OptionalTensor& batch, int64_t dim,
                                                       int64_t axes) {
  const auto packed =
      pack_points(x, positions, value_or_undefined(mask), value_or_undefined(batch), dim, axes);
  return {packed.x, packed.positions, packed.first};
}

at::Tensor unpack_op(const at::Tensor& rows, const OptionalTensor& mask, c10::SymInt clouds,
                     c10::SymInt tokens) {
  return unpack_points(rows, value_or_undefined(mask), std::move(clouds), std::move(tokens));
}

std::vector<at::Tensor> list_op(const at::Tensor& positions, const at::Tensor& spacing,
                                const at::Tensor& first, int64_t radius, int64_t neighbours,
                                double cutoff, bool window, bool cls, const OptionalTensor& query,
                                const OptionalTensor& key, bool distances) {
  const auto p =
      list_points(positions, spacing, first, {radius, neighbours, cutoff, window, cls, distances},
                  value_or_undefined(query), value_or_undefined(key));
  return {p.list.query,   p.list.key,     p.list.slots, p.list.phi,   p.query.places,
          p.query.tokens, p.query.first,  p.key.places, p.key.tokens, p.key.first,
          p.value.places, p.value.tokens, p.value.first};
}

}  // namespace

PackedPoints pack_points(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& mask,
                         const at::Tensor& batch, int64_t dim, int64_t axes) {
  check_rows(x, positions, dim, axes);
  const auto numbers = x.options().dtype(at::kLong).requires_grad(false);
  if (x.dim() == 2) {
    TORCH_CHECK(!mask.defined(), kPoints,
                ": mask belongs to padded x [B, N, dim]; use batch with [R, dim]");
    if (!batch.defined()) return {x, positions, at::tensor({int64_t{0}, x.size(0)}, numbers)};
    check_batch(batch, x.size(0));
    return {x, positions, first_rows(batch)};
  }
  TORCH_CHECK(!batch.defined(), kPoints,
              ": batch belongs to packed x [R, dim]; use mask with [B, N, dim]");
  const int64_t B = x.size(0), N = x.size(1);
  if (!mask.defined())
    return {x.flatten(0, 1), positions.flatten(0, 1), at::arange(B + 1, numbers) * N};
  check_mask(mask, B, N);
  return {x.index({mask}), positions.index({mask}), first_rows(mask.nonzero().select(1, 0))};
}

at::Tensor unpack_points(const at::Tensor& rows, const at::Tensor& mask, c10::SymInt clouds,
                         c10::SymInt tokens) {
  const auto width = rows.sym_size(1);
  if (!mask.defined()) return rows.view_symint({clouds, tokens, width});
  return at::zeros_symint({clouds, tokens, width}, rows.options())
      .masked_scatter(mask.unsqueeze(2), rows);
}

PointPairs list_points(const at::Tensor& positions, const at::Tensor& spacing,
                       const at::Tensor& first, const PointRule& rule, const at::Tensor& query,
                       const at::Tensor& key) {
  at::Tensor special, at = positions;
  if (rule.cls) {
    special = class_tokens(positions, first);
    at = positions.masked_fill(special.unsqueeze(1), 0);
  }
  PairList list;
  std::tie(list.query, list.key) =
      query.defined() ? sort_given(query, key, first)
                      : point_pairs(at.detach(), first, rule.neighbours, rule.cutoff, special);
  if (rule.window) drop_far(at, spacing, rule, special, list);
  std::tie(list.slots, list.phi) =
      rule.distances ? distance_taps(at, spacing, list, rule.radius, special)
                     : point_taps(at, spacing, list.query, list.key, rule.radius, special);
  const int64_t lattice = lattice_slots(rule.distances ? 1 : positions.size(1), rule.radius);
  const int64_t slots = lattice + (rule.cls ? 3 : 0), tokens = positions.size(0);
  // Gradients of positions read the rows of all taps.
  const auto used = list.phi.requires_grad() ? at::Tensor() : list.phi;
  return {list, slot_rows(list.slots, list.query, tokens, slots, 0, used),
          slot_rows(list.slots, list.key, tokens, slots, lattice, used),
          slot_rows(list.slots, list.key, tokens, slots, 0, used)};
}

// Their sizes depend on the values, so they have no shapes before they run. They are made of ops
// that have gradients.
TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def(
      "pack_points(Tensor x, Tensor positions, Tensor? mask, Tensor? batch, int dim, int axes) -> "
      "(Tensor x, Tensor positions, Tensor first)",
      pack_op);
  m.def("unpack_points(Tensor rows, Tensor? mask, SymInt clouds, SymInt tokens) -> Tensor",
        unpack_op);
  m.def(
      "list_points(Tensor positions, Tensor spacing, Tensor first, int radius, int neighbours, "
      "float cutoff, bool window, bool cls, Tensor? query=None, Tensor? key=None, "
      "bool distances=False) -> Tensor[]",
      list_op);
}

}  // namespace translution
