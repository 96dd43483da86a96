#include "translution/nn/regrid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/tiny_models.h"

namespace translution {
namespace {

using Shape = std::vector<int64_t>;
using Coordinates = std::vector<int64_t>;

at::Tensor random_rows(int64_t rows) {
  torch::manual_seed(kSeed);
  return torch::randn({rows, 3, 5}, torch::kDouble);
}

// Slot of `offset` in the table, or -1.
int64_t slot_of(const OffsetTable& table, const std::optional<Coordinates>& offset) {
  for (int64_t slot = 0; slot < table.num_slots(); ++slot)
    if (table.offset(slot) == offset) return slot;
  return -1;
}

// The first slot whose offset is nearest.
int64_t nearest_slot(const OffsetTable& table, const Coordinates& offset) {
  int64_t best = -1, best_distance = 0;
  for (int64_t slot = 0; slot < table.num_slots(); ++slot) {
    const auto other = table.offset(slot);
    if (!other) continue;
    int64_t distance = 0;
    for (size_t axis = 0; axis < offset.size(); ++axis)
      distance += (offset[axis] - (*other)[axis]) * (offset[axis] - (*other)[axis]);
    if (best < 0 || distance < best_distance) best = slot, best_distance = distance;
  }
  return best;
}

struct Tables {
  OffsetTable from, to;
  int64_t grid_slots(const OffsetTable& table) const {
    return table.num_slots() - (table.options().cls ? 3 : 0);
  }
};

// From smaller to larger and from taller to wider, in one to three dimensions.
std::vector<Tables> all_tables() {
  std::vector<Tables> all;
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> grids = {
      {{3, 3}, {5, 4}}, {{4, 2}, {2, 5}}, {{5}, {8}}, {{2, 2, 2}, {3, 2, 4}}};
  for (const auto& [from, to] : grids)
    for (const bool cls : {false, true})
      for (const bool causal : {false, true})
        all.push_back({OffsetTable({from, cls, causal}), OffsetTable({to, cls, causal})});
  return all;
}

TEST(RegridOffsets, CopiesKnownOffsetsAndTheClassTokenAndFillsTheRestFromTheNearest) {
  for (const auto& tables : all_tables()) {
    const auto& [from, to] = tables;
    const auto old_rows = random_rows(from.num_slots());
    RegridNote note{"table", 0, 0, 0, 0};
    const auto new_rows = regrid_offsets(old_rows, from, to, Fill::nearest, &note);
    ASSERT_EQ(new_rows.sizes(), (Shape{to.num_slots(), 3, 5}));
    int64_t filled = 0;
    for (int64_t slot = 0; slot < to.num_slots(); ++slot) {
      const auto offset = to.offset(slot);
      int64_t source =
          offset ? slot_of(from, offset) : slot - tables.grid_slots(to) + tables.grid_slots(from);
      if (source < 0) source = nearest_slot(from, *offset), ++filled;
      EXPECT_TRUE(same_bits(new_rows[slot], old_rows[source])) << to.slot_name(slot);
    }
    EXPECT_EQ(note.name, "table");
    EXPECT_EQ((std::vector{note.old_rows, note.new_rows, note.kept, note.filled}),
              (Shape{from.num_slots(), to.num_slots(), to.num_slots() - filled, filled}));
  }
}

TEST(RegridOffsets, BicubicCopiesKnownOffsetsAndInterpolatesTheRest) {
  for (const bool cls : {false, true}) {
    const OffsetTable from({{3, 3}, cls}), to({{5, 4}, cls});
    const auto old_rows = random_rows(from.num_slots());
    const auto new_rows = regrid_offsets(old_rows, from, to, Fill::bicubic);
    const auto image = old_rows.narrow(0, 0, 25).reshape({1, 5, 5, 15}).permute({0, 3, 1, 2});
    const auto stretched = at::upsample_bicubic2d(image, {9, 7}, /*align_corners=*/true)
                               .permute({0, 2, 3, 1})
                               .reshape({63, 3, 5});
    for (int64_t slot = 0; slot < 63; ++slot) {
      const int64_t known = slot_of(from, to.offset(slot));
      if (known >= 0)
        EXPECT_TRUE(same_bits(new_rows[slot], old_rows[known])) << to.slot_name(slot);
      else
        EXPECT_TRUE(agree(new_rows[slot], stretched[slot])) << to.slot_name(slot);
    }
    EXPECT_TRUE(agree(new_rows[0], old_rows[0])) << "corner to corner";
    if (cls) {
      EXPECT_TRUE(same_bits(new_rows.narrow(0, 63, 3), old_rows.narrow(0, 25, 3)));
    }
  }
}

TEST(RegridOffsets, BicubicPreservesConstantRows) {
  const OffsetTable from({{4}}), to({{9}});
  const auto rows = torch::full({7, 2}, 0.375, torch::kDouble);
  EXPECT_TRUE(agree(regrid_offsets(rows, from, to, Fill::bicubic),
                    torch::full({17, 2}, 0.375, torch::kDouble)));
}

TEST(RegridOffsets, ShrinkingAfterGrowingRestoresTheOriginal) {
  for (const auto& [from, to] : all_tables()) {
    const auto old_rows = random_rows(from.num_slots());
    const auto grown = regrid_offsets(old_rows, from, to, Fill::nearest);
    const auto back = regrid_offsets(grown, to, from, Fill::nearest);
    for (int64_t slot = 0; slot < from.num_slots(); ++slot) {
      const bool known = !from.offset(slot) || slot_of(to, from.offset(slot)) >= 0;
      EXPECT_EQ(same_bits(back[slot], old_rows[slot]), known) << from.slot_name(slot);
    }
  }
}

TEST(RegridOffsets, ShrinkingDropsRowsAndFillsNone) {
  const OffsetTable from({{5, 4}, true}), to({{3, 3}, true});
  const auto old_rows = random_rows(from.num_slots());
  RegridNote note{};
  const auto rows = regrid_offsets(old_rows, from, to, Fill::bicubic, &note);
  EXPECT_EQ(note.filled, 0);
  EXPECT_EQ(note.kept, 28);
  EXPECT_TRUE(same_bits(rows[slot_of(to, Coordinates{-2, 1})],
                        old_rows[slot_of(from, Coordinates{-2, 1})]));
}

TEST(RegridOffsets, ALongerTextRepeatsTheFarthestOffset) {
  const OffsetTable from({{5}, false, true}), to({{8}, false, true});
  const auto old_rows = random_rows(5);
  const auto rows = regrid_offsets(old_rows, from, to, Fill::nearest);
  EXPECT_TRUE(same_bits(rows.narrow(0, 0, 5), old_rows));
  for (int64_t slot = 5; slot < 8; ++slot) EXPECT_TRUE(same_bits(rows[slot], old_rows[4]));
}

TEST(RegridOffsets, SharedOffsetsKeepTheirSlots) {
  const OffsetOptions options{{4, 4}, true, false, Encoding::relative, Sharing::direction, 1};
  OffsetOptions larger = options;
  larger.grid = {9, 9};
  const OffsetTable from(options), to(larger);
  const auto rows = random_rows(from.num_slots());
  EXPECT_TRUE(same_bits(regrid_offsets(rows, from, to, Fill::nearest), rows));
}

TEST(RegridPositions, CopiesTheClassTokenAndTheCommonPositions) {
  const OffsetOptions from{{3, 2}, true}, to{{4, 3}, true};
  const auto old_rows = random_rows(7);
  RegridNote note{"position_embedding", 0, 0, 0, 0};
  const auto rows = regrid_places(old_rows, from, to, Fill::nearest, &note);
  const std::vector<int64_t> source{0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 5, 6, 6};
  for (int64_t row = 0; row < 13; ++row)
    EXPECT_TRUE(same_bits(rows[row], old_rows[source[row]])) << row;
  EXPECT_EQ(note.str(Fill::nearest),
            "position_embedding: 7 -> 13 rows, 7 kept, 6 filled from the nearest");
  EXPECT_EQ(note.str(Fill::bicubic),
            "position_embedding: 7 -> 13 rows, 7 kept, 6 filled bicubically");
}

// --- complete models

NamedTensors tensors_of(torch::nn::Module& model) {
  NamedTensors tensors;
  for (const auto& parameter : model.named_parameters())
    tensors[parameter.key()] = parameter.value().detach().clone();
  return tensors;
}

bool same_tensors(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_bits(x.second, y.second);
  });
}

ModelOptions larger_vit(const Position& position) {
  auto options = tiny_vit(position);
  options.image_size = {16, 12};  // grid 4x3
  return options;
}

TEST(LoadTensors, OnTheSameGridCopiesEverythingAndMovesNothing) {
  for (const auto& [name, position] : every_position()) {
    auto saved = build<ViT>(tiny_vit(position));
    torch::manual_seed(kSeed + 7);
    ViT model(tiny_vit(position));
    model->to(torch::kDouble);
    EXPECT_THAT(load_tensors(*model, tensors_of(*saved), {3, 2}), testing::IsEmpty()) << name;
    EXPECT_TRUE(same_tensors(tensors_of(*model), tensors_of(*saved))) << name;
  }
}

TEST(LoadTensors, ToALargerGridMovesExactlyTheRowsPerOffset) {
  for (const auto& [name, position] : every_position()) {
    if (position.encoding == Encoding::absolute) continue;
    auto saved = build<ViT>(tiny_vit(position));
    torch::manual_seed(kSeed + 7);
    ViT model(larger_vit(position));
    model->to(torch::kDouble);
    const auto notes = load_tensors(*model, tensors_of(*saved), {3, 2});
    const auto old_tensors = tensors_of(*saved), new_tensors = tensors_of(*model);
    std::set<std::string> moved;
    for (const auto& note : notes) moved.insert(note.name);
    for (const auto& [key, tensor] : new_tensors) {
      const auto layer = key.find(".1.") != std::string::npos ? 1 : 0;
      const auto& from = saved->backbone->blocks->at<BlockImpl>(layer).attention;
      const auto& to = model->backbone->blocks->at<BlockImpl>(layer).attention;
      auto expected = old_tensors.at(key);
      if (key == "position_embedding")
        expected = regrid_places(expected, {{3, 2}, true}, {{4, 3}, true}, Fill::nearest);
      else if (moved.count(key) == 1)
        expected = regrid_offsets(expected, *from->offsets(), *to->offsets(), Fill::nearest);
      EXPECT_TRUE(same_bits(tensor, expected)) << name << ": " << key;
    }
    EXPECT_EQ(model(torch::zeros({1, 2, 16, 12}, torch::kDouble)).sizes(), (Shape{1, 5})) << name;
  }
}

std::vector<std::string> texts(const std::vector<RegridNote>& notes, Fill fill) {
  std::vector<std::string> lines;
  for (const auto& note : notes) lines.push_back(note.str(fill));
  return lines;
}

TEST(LoadTensors, ReturnsANotePerMovedTensor) {
  auto options = tiny_vit(), larger = larger_vit({});
  options.hybrid_layers = larger.hybrid_layers = 1;
  options.input_embedding = larger.input_embedding = true;
  auto saved = build<ViT>(options), model = build<ViT>(larger);
  const auto notes = load_tensors(*model, tensors_of(*saved), {3, 2}, Fill::bicubic);
  EXPECT_THAT(
      texts(notes, Fill::bicubic),
      testing::ElementsAre(
          "position_embedding: 7 -> 13 rows, 7 kept, 6 filled bicubically",
          "backbone.blocks.0.attention.query: 18 -> 38 rows, 18 kept, 20 filled bicubically",
          "backbone.blocks.0.attention.key: 18 -> 38 rows, 18 kept, 20 filled bicubically",
          "backbone.blocks.0.attention.value: 18 -> 38 rows, 18 kept, 20 filled bicubically"));
}

TEST(LoadTensors, MovesNothingOfAGate) {
  Position gated;
  gated.method = Method::gated_position;
  auto saved = build<ViT>(tiny_vit(gated)), model = build<ViT>(larger_vit(gated));
  EXPECT_THAT(load_tensors(*model, tensors_of(*saved), {3, 2}), testing::IsEmpty());
  EXPECT_TRUE(same_tensors(tensors_of(*model), tensors_of(*saved)));
}

TEST(LoadTensors, ALongerTextModelComputesTheSameOnTheOldLength) {
  for (const auto& [name, position] : every_position()) {
    if (position.encoding == Encoding::absolute) continue;
    auto longer = tiny_gpt(position);
    longer.length = 12;
    auto saved = build<GPT>(tiny_gpt(position));
    auto model = build<GPT>(longer);
    load_tensors(*model, tensors_of(*saved), {7});
    const auto tokens = random_tokens(2, 12);
    EXPECT_TRUE(agree(model(tokens).narrow(1, 0, 7), saved(tokens.narrow(1, 0, 7)))) << name;
  }
}

TEST(LoadTensors, ConvertsToTheTypeOfTheModel) {
  auto saved = build<ViT>(tiny_vit(), torch::kFloat);
  auto model = build<ViT>(tiny_vit(), torch::kDouble);
  load_tensors(*model, tensors_of(*saved), {3, 2});
  EXPECT_EQ(model->cls_token.scalar_type(), torch::kDouble);
  EXPECT_TRUE(same_bits(model->cls_token, saved->cls_token.to(torch::kDouble)));
}

TEST(LoadTensors, ThatFailsLeavesTheModelUnchanged) {
  auto saved = build<ViT>(tiny_vit());
  torch::manual_seed(kSeed + 7);
  ViT model(larger_vit({}));
  model->to(torch::kDouble);
  const auto before = tensors_of(*model), good = tensors_of(*saved);
  const auto expect_refused = [&](NamedTensors tensors, std::vector<int64_t> grid) {
    EXPECT_THROW(load_tensors(*model, tensors, grid), std::invalid_argument);
    EXPECT_TRUE(same_tensors(tensors_of(*model), before));
  };
  const auto with = [&good](const std::string& name, const at::Tensor& tensor) {
    auto tensors = good;
    tensors[name] = tensor;
    return tensors;
  };
  auto missing = good;
  missing.erase("head.bias");
  expect_refused(missing, {3, 2});
  expect_refused(with("extra", torch::ones({1})), {3, 2});
  expect_refused(with("head.bias", torch::ones({6})), {3, 2});
  expect_refused(with("head.bias", {}), {3, 2});
  expect_refused(with("head.bias", torch::ones({5}, torch::kLong)), {3, 2});
  expect_refused(with("head.bias", torch::ones({5}, torch::kMeta)), {3, 2});
  expect_refused(with("backbone.blocks.1.attention.key", torch::ones({17, 12, 16})), {3, 2});
  expect_refused(with("backbone.blocks.1.attention.key", torch::ones({18, 12, 15})), {3, 2});
  expect_refused(with("backbone.blocks.1.attention.key", torch::ones({})), {3, 2});
  expect_refused(good, {6});
  expect_refused(good, {2, 3, 1});
  expect_refused(good, {2, 2});
  expect_refused(good, {});
  expect_refused(good, {4, 3});
}

}  // namespace
}  // namespace translution
