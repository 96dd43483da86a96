#include "tests/nn/digest_cases.h"

#include <functional>

#include "tests/nn/positions.h"

namespace translution::testing {
namespace {

using Cases = std::vector<LayerCase>;
using Edit = std::function<void(LayerCase&)>;

// Tokens, batch and widths; the widths are not multiples of a vector.
struct Layout {
  std::string name;
  std::vector<int64_t> grid;
  bool cls = false, causal = false;
  int64_t batch = 3;
  int64_t dim = 21, heads = 3, dim_head = 10, relative_dim = 7;
};

const Layout kImage{"image", {3, 4}, /*cls=*/true};
const Layout kText{"text", {13}, false, /*causal=*/true};
const Layout kVolume{"volume", {2, 2, 3}};

Layout with_batch(Layout layout, const std::string& name, int64_t batch) {
  layout.name = name, layout.batch = batch;
  return layout;
}

// Encodings of 64 channels or more may be saved for backward.
Layout wide(Layout layout, int64_t dim_head = 22) {
  layout.dim = layout.heads * dim_head, layout.dim_head = dim_head;
  layout.relative_dim = 23;
  return layout;
}

// Both types, or one.
const std::vector<at::ScalarType> kBoth{at::kFloat, at::kDouble}, kFloats{at::kFloat};

AttentionOptions options_of(const Layout& layout, Position position) {
  constexpr int64_t kRotaryHead = 12;  // pairs of channels for one, two and three axes
  if (position.relative_dim > 0) position.relative_dim = layout.relative_dim;
  return AttentionOptions(layout.dim)
      .heads(layout.heads)
      .dim_head(position.rotates() ? kRotaryHead : layout.dim_head)
      .grid(layout.grid)
      .cls(layout.cls)
      .causal(layout.causal)
      .position(position);
}

void add(Cases& cases, const Layout& layout, const std::vector<NamedPosition>& positions,
         const std::vector<at::ScalarType>& types = kBoth, const Edit& edit = {}) {
  const int64_t tokens = count_tokens({layout.grid, layout.cls, layout.causal});
  for (const auto& [name, position] : positions)
    for (const auto type : types) {
      const char* suffix = type == at::kFloat ? " float" : " double";
      cases.push_back({layout.name + " " + name + suffix,
                       options_of(layout, position),
                       layout.batch,
                       tokens,
                       type,
                       {}});
      if (edit) edit(cases.back());
    }
}

std::vector<NamedPosition> only(const std::vector<NamedPosition>& positions,
                                const std::function<bool(const Position&)>& accept) {
  std::vector<NamedPosition> selected;
  for (const auto& named : positions)
    if (accept(named.position)) selected.push_back(named);
  return selected;
}

// Attention with a matrix per slot.
bool has_matrices(const Position& p) {
  return (p.method == Method::translution || p.method == Method::alpha_translution) &&
         p.uses_offsets();
}

std::vector<NamedPosition> positions_with_matrices() {
  return only(every_position(), has_matrices);
}

// Few slots with many pairs each.
std::vector<NamedPosition> positions_with_few_slots() {
  auto positions =
      only(positions_with_matrices(), [](const Position& p) { return p.sharing != Sharing::none; });
  for (auto& [name, position] : positions) position.radius = 0;
  return positions;
}

// Twelve tokens and three slots. Token 4 attends to no token, and about every seventh other pair is
// left out.
std::shared_ptr<const OffsetTable> relation() {
  constexpr int64_t kTokens = 12;
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < kTokens; ++i)
    for (int64_t j = 0; j < kTokens; ++j) {
      const int64_t mixed = (5 * i + 3 * j) % 7;
      slots.push_back(i == 4 || mixed == 6 ? -1 : mixed % 3);
    }
  return std::make_shared<const OffsetTable>(
      OffsetTable::from_relation(slots, kTokens, 3, /*mirror=*/{1, 0, 2}));
}

void add_relations(Cases& cases) {
  const auto positions = only(every_position(), [](const Position& p) {
    return p.uses_offsets() && !p.rotates() && p.method != Method::gated_position;
  });
  const auto table = relation();
  const Edit relate = [&](LayerCase& c) {
    c.options.relation(table).grid({}).cls(false);
    c.tokens = table->num_tokens();
  };
  add(cases, with_batch(kImage, "relation", 3), positions, kBoth, relate);
  add(cases, with_batch(kText, "causal relation", 3), positions, kFloats, relate);
  add(cases, with_batch(kImage, "relation of 19", 19), only(positions, has_matrices), kFloats,
      relate);
}

void add_small(Cases& cases) {
  for (const auto& layout : {kImage, kText}) {
    add(cases, layout, every_position());
    add(cases, with_batch(layout, layout.name + " rows", 2), every_position(), kFloats,
        [](LayerCase& c) {
          c.rows = {5, 0, 6, 5};
        });
  }
  add(cases, kVolume, every_position(), kFloats);
  add(cases, with_batch(kText, "shorter", 2), every_position(), kBoth,
      [](LayerCase& c) { c.tokens = 9; });
  add(cases, with_batch(kText, "shorter without order", 2), every_method(), kFloats,
      [](LayerCase& c) { c.tokens = 9, c.options.causal(false); });
  add(cases, with_batch(kImage, "one sample", 1), every_method());
}

void add_choices(Cases& cases) {
  const auto attentions =
      only(every_position(), [](const Position& p) { return p.method != Method::convolution; });
  add(cases, with_batch(kImage, "dropout", 3), attentions, kFloats,
      [](LayerCase& c) { c.options.dropout(0.3); });
  const auto plain = only(every_position(), [](const Position& p) { return p.shares_qkv(); });
  add(cases, with_batch(kImage, "biases", 3), plain, kBoth,
      [](LayerCase& c) { c.options.qkv_bias(true); });
  add(cases, with_batch(kText, "biases of text", 3), plain, kFloats,
      [](LayerCase& c) { c.options.qkv_bias(true); });
  add(cases, with_batch(kImage, "angles in float", 3),
      only(every_position(), [](const Position& p) { return p.rotates(); }), kBoth,
      [](LayerCase& c) { c.options.position().angles = Angles::in_float; });
  add(cases, with_batch(kImage, "strided", 3), every_method(), kFloats,
      [](LayerCase& c) { c.strided = true; });
  add(cases, with_batch(kImage, "fixed weights", 3), every_position(), kFloats,
      [](LayerCase& c) { c.gradients = Gradients::of_input; });
  add(cases, with_batch(kImage, "fixed input", 3), every_position(), kFloats,
      [](LayerCase& c) { c.gradients = Gradients::of_weights; });
}

// Narrow rows with the batch as the innermost dimension; a batch of 128 is split into two parts.
void add_batch_last(Cases& cases) {
  add(cases, with_batch(kImage, "image of 17", 17), positions_with_matrices());
  add(cases, with_batch(kText, "text of 31", 31), positions_with_matrices(), kFloats);
  add(cases, with_batch(kImage, "rows of 17", 17), positions_with_matrices(), kFloats,
      [](LayerCase& c) {
        c.rows = {5, 0, 6, 5};
      });
  add(cases, with_batch(kImage, "dropout of 17", 17), only(every_method(), has_matrices), kFloats,
      [](LayerCase& c) { c.options.dropout(0.3); });
  add(cases, with_batch(kImage, "fixed weights of 17", 17), positions_with_matrices(), kFloats,
      [](LayerCase& c) { c.gradients = Gradients::of_input; });
  const Layout small{"image of 128", {2, 2}, true, false, 128};
  add(cases, small, positions_with_matrices(), kFloats);
  add(cases, small, every_method(), {at::kDouble});
}

// Slots with many pairs in one chunk.
void add_dense(Cases& cases) {
  const Layout image{"dense image", {4, 5}, true};
  add(cases, image, positions_with_few_slots());
  add(cases, with_batch(image, "dense image of 17", 17), positions_with_few_slots());
  add(cases, wide(with_batch(image, "dense wide image", 3)), positions_with_few_slots());
}

void add_wide(Cases& cases) {
  const auto positions = positions_with_matrices();
  const Layout image = wide({"wide image", {2, 3}, true});
  add(cases, image, positions);
  add(cases, with_batch(image, "wide rows", 3), positions, kFloats, [](LayerCase& c) {
    c.rows = {5, 0, 6, 5};
  });
  add(cases, wide({"wide text", {16}, false, true}), positions, kFloats);
  add(cases, wide({"wide image of 128", {2, 2}, true, false, 128}), positions, kFloats);
  const Layout widest = wide({"image of 192 channels", {2, 2}, true, false, 2}, 64);
  add(cases, widest, positions, kFloats);
  add(cases, widest, every_method(), {at::kDouble});
}

}  // namespace

bool LayerCase::can_save_encodings() const {
  constexpr int64_t kWide = 64;  // encodings of fewer channels are always recomputed
  const Position& position = options.position();
  const bool alpha = position.method == Method::alpha_translution;
  if (!has_matrices(position) || !(position.roles.q || position.roles.k)) return false;
  return (alpha ? options.heads() * position.relative_dim : options.dim()) >= kWide;
}

std::vector<LayerCase> every_case() {
  Cases cases;
  add_small(cases);
  add_choices(cases);
  add_relations(cases);
  add_batch_last(cases);
  add_dense(cases);
  add_wide(cases);
  return cases;
}

std::vector<LayerCase> every_bf16_case() {
  Cases cases;
  const auto matrices = positions_with_matrices();
  const auto rows = [](LayerCase& c) { c.rows = {5, 0, 6, 5}; };
  add(cases, kImage, every_position(), kFloats);
  add(cases, kText, every_position(), kFloats);
  add(cases, kVolume, every_method(), kFloats);
  add(cases, with_batch(kText, "text rows", 2), every_position(), kFloats, rows);
  add(cases, with_batch(kText, "shorter", 2), every_method(), kFloats,
      [](LayerCase& c) { c.tokens = 9; });
  add(cases, with_batch(kImage, "one sample", 1), every_method(), kFloats);
  add(cases, with_batch(kImage, "dropout", 3), every_method(), kFloats,
      [](LayerCase& c) { c.options.dropout(0.3); });
  add(cases, with_batch(kImage, "biases", 3),
      only(every_position(), [](const Position& p) { return p.shares_qkv(); }), kFloats,
      [](LayerCase& c) { c.options.qkv_bias(true); });
  add(cases, with_batch(kImage, "strided", 3), every_method(), kFloats,
      [](LayerCase& c) { c.strided = true; });
  add(cases, with_batch(kImage, "fixed weights", 3), every_method(), kFloats,
      [](LayerCase& c) { c.gradients = Gradients::of_input; });
  add(cases, with_batch(kImage, "fixed input", 3), every_method(), kFloats,
      [](LayerCase& c) { c.gradients = Gradients::of_weights; });
  add(cases, with_batch(kImage, "image of 17", 17), matrices, kFloats);
  add(cases, with_batch(kImage, "rows of 17", 17), matrices, kFloats, rows);
  add(cases, {"image of 128", {2, 2}, true, false, 128}, matrices, kFloats);
  add(cases, with_batch({"dense image", {4, 5}, true}, "dense image of 17", 17),
      positions_with_few_slots(), kFloats);
  add(cases, wide({"wide image", {2, 3}, true}), matrices, kFloats);
  add(cases, wide({"wide text", {16}, false, true}), matrices, kFloats);
  add(cases, wide({"wide image of 128", {2, 2}, true, false, 128}), matrices, kFloats);
  add(cases, wide({"image of 192 channels", {2, 2}, true, false, 2}, 64), every_position(),
      kFloats);
  for (auto& c : cases) {
    c.name += " bf16";
    c.options.precision(Precision::bf16);
  }
  return cases;
}

}  // namespace translution::testing
