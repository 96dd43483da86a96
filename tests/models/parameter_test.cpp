#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "apps/translution/paper/tables.h"
#include "tests/models/tiny_models.h"
#include "translution/models/cost.h"

namespace translution {

using namespace detail;

using namespace cli;

namespace {

std::vector<std::pair<std::string, PaperRow>> all_rows() {
  std::vector<std::pair<std::string, PaperRow>> rows;
  for (const auto& table : paper_table_names())
    for (const auto& row : paper_table(table).rows)
      rows.emplace_back(
          join(table, ": ", row.model.name(), " ", name_of(kMethods, row.model.position.method)),
          row);
  return rows;
}

using NamedShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

NamedShapes listed_shapes(const ModelOptions& options) {
  NamedShapes shapes;
  for (const auto& spec : model_parameters(options)) shapes.emplace_back(spec.name, spec.shape);
  return shapes;
}

template <typename Model>
NamedShapes built_shapes(const ModelOptions& options) {
  const Model model(options);
  NamedShapes shapes;
  for (const auto& parameter : model->named_parameters())
    shapes.emplace_back(parameter.key(), parameter.value().sizes().vec());
  return shapes;
}

NamedShapes built_shapes(const ModelOptions& options) {
  if (options.family == Family::cloud) return built_shapes<Cloud>(options);
  return options.family == Family::vit ? built_shapes<ViT>(options) : built_shapes<GPT>(options);
}

int64_t total(const NamedShapes& shapes) {
  int64_t sum = 0;
  for (const auto& [name, shape] : shapes) sum += c10::multiply_integers(shape);
  return sum;
}

TEST(PaperTables, Have70Rows) {
  EXPECT_THAT(paper_table_names(), testing::ElementsAre("mnist", "imagenet", "position_encodings",
                                                        "relative_vs_absolute", "relative_dim",
                                                        "input_position_embedding", "gpt"));
  EXPECT_EQ(all_rows().size(), 70u);
}

TEST(PaperTables, EveryModelHasExactlyTheParametersOfThePaper) {
  int exact = 0;
  for (const auto& [name, row] : all_rows()) {
    if (!row.parameters) continue;
    EXPECT_EQ(model_cost(row.model).parameters, *row.parameters) << name;
    ++exact;
  }
  EXPECT_EQ(exact, 66);
}

TEST(PaperTables, EveryPrintedCountAgreesExceptFiveMisprints) {
  std::vector<std::string> misprints;
  for (const auto& [name, row] : all_rows()) {
    const auto agrees = row.agrees(model_cost(row.model).parameters);
    EXPECT_EQ(agrees.has_value(), row.printed_millions.has_value()) << name;
    if (agrees.has_value() && !*agrees) misprints.push_back(*row.printed_millions);
  }
  EXPECT_THAT(misprints, testing::ElementsAre("223.1", "85.4", "4.68", "4.89", "60.0"));
}

// Up to 3.9 billion numbers: with Init::none tables are not touched, so they take address space but
// no memory.
TEST(PaperTables, EveryModelHasTheListedParameters) {
  for (const auto& [name, row] : all_rows()) {
    auto options = row.model;
    options.init = Init::none;
    const auto built = built_shapes(options);
    EXPECT_EQ(built, listed_shapes(options)) << name;
    EXPECT_EQ(total(built), model_cost(options).parameters) << name;
  }
}

TEST(ModelParameters, AreListedAsBuiltForEveryMethodAndPooling) {
  for (const auto& [name, position] : every_position()) {
    for (const auto& options :
         {tiny_vit(position), tiny_vit(position, Pooling::mean), tiny_gpt(position)}) {
      auto hybrid = options;
      hybrid.hybrid_layers = 1;
      hybrid.input_embedding = true;
      EXPECT_EQ(built_shapes(options), listed_shapes(options)) << name;
      EXPECT_EQ(built_shapes(hybrid), listed_shapes(hybrid)) << name;
    }
  }
}

TEST(ModelParameters, OfPointsAreListedAsBuilt) {
  for (const auto& [name, position] : every_position()) {
    if (!works_on_points(position)) continue;
    for (const auto pooling : {Pooling::cls, Pooling::mean}) {
      const auto options = tiny_cloud(position, pooling);
      EXPECT_EQ(built_shapes(options), listed_shapes(options)) << name;
      EXPECT_EQ(total(built_shapes(options)), model_cost(options).parameters) << name;
      auto other = options;
      other.hybrid_layers = 1, other.input_embedding = true, other.learn_spacing = true;
      other.distances = true, other.axes = 3, other.classes = 0;
      EXPECT_EQ(built_shapes(other), listed_shapes(other)) << name;
    }
  }
}

TEST(ModelParameters, AreListedAsBuiltInOtherLayouts) {
  for (const auto& [name, position] : every_position()) {
    if (!position.takes_qkv_bias()) continue;
    for (auto options : {tiny_vit(position), tiny_gpt(position)}) {
      const auto paper = total(listed_shapes(options));
      options.extra_norms = false;
      options.qkv_bias = true;
      EXPECT_EQ(built_shapes(options), listed_shapes(options)) << name;
      EXPECT_NE(total(listed_shapes(options)), paper) << name;
    }
  }
}

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * 4096;
}

TEST(InitNone, TouchesNoTable) {
  auto options = ModelOptions::named("vit-b/16");  // 3.9 GB
  options.init = Init::none;
  const int64_t before = resident_bytes();
  const ViT model(options);
  EXPECT_GT(model_cost(options).weight_bytes, 3.9e9);
  EXPECT_LT(resident_bytes() - before, int64_t{200} << 20);
}

// --- cost, compared with sums by hand

TEST(ModelCost, OfATinyViTIsTheSumOfItsProducts) {
  const double embed = 2.0 * 6 * 32 * 12, head = 2.0 * 12 * 5;
  // 7 tokens, 49 pairs; three matrices of 12x16 per pair, scores and sums of width 16.
  const double first =
      3 * 2.0 * 49 * 12 * 16 + 2 * 2.0 * 49 * 16 + 2.0 * 7 * 16 * 12 + 2 * 2.0 * 7 * 12 * 20;
  // The last layer computes only the class token: 1 row, 7 pairs.
  const double last = 3 * 2.0 * 7 * 12 * 16 + 2 * 2.0 * 7 * 16 + 2.0 * 16 * 12 + 2 * 2.0 * 12 * 20;
  const auto cost = model_cost(tiny_vit());
  EXPECT_EQ(cost.forward_flops, embed + first + last + head);
  EXPECT_EQ(cost.training_flops, 3 * cost.forward_flops);
}

TEST(ModelCost, OfATinyGPTIsTheSumOfItsProducts) {
  Position alpha;
  alpha.method = Method::alpha_translution;
  alpha.relative_dim = 3;  // r = 6
  const double N = 7, pairs = 28;
  const double shared = 3 * 2 * N * 12 * 16, down = 3 * 2 * N * 12 * 6, up = 2 * N * 6 * 16;
  const double tables = 3 * 2 * pairs * 6 * 6, sums = 2 * 2 * pairs * (16 + 6);
  const double rest = 2 * N * 16 * 12 + 2 * 2 * N * 12 * 20;
  EXPECT_EQ(model_cost(tiny_gpt(alpha)).forward_flops,
            2 * (shared + down + up + tables + sums + rest) + 2 * N * 12 * 11);
}

// C = 12 channels in 2 heads of 8; C^1 = 2 * 3 and C^2 = 2 * 5; 7 offsets of a causal text of 7.
TEST(ModelCost, OfAlphaWithTwoWidthsFollowsThePaper) {
  Position alpha, square;
  alpha.method = square.method = Method::alpha_translution;
  alpha.relative_dim = square.relative_dim = square.relative_dim_out = 3;
  alpha.relative_dim_out = 5;
  const auto cost = model_cost(tiny_gpt(alpha)), before = model_cost(tiny_gpt(square));
  const int64_t tables = 3 * 7 * 6 * (10 - 6), up = (10 - 6) * 16;
  EXPECT_EQ(cost.parameters - before.parameters, 2 * (tables + up));
  const double N = 7, pairs = 28;
  EXPECT_EQ(cost.forward_flops - before.forward_flops,
            2 * (3 * 2 * pairs * 6 * 4 + 2 * 2 * pairs * 4 + 2 * N * 4 * 16));
  square.relative_dim_out = 0;
  EXPECT_EQ(model_cost(tiny_gpt(square)).parameters, before.parameters);
}

TEST(ModelCost, OfPlainAttentionCountsQueriesOnlyForTheComputedRows) {
  Position plain;
  plain.method = Method::self_attention_no_pos;
  auto options = tiny_vit(plain);
  options.architecture.depth = 1;
  const double projections = 2.0 * (1 + 7 + 7) * 12 * 16;
  EXPECT_EQ(model_cost(options).forward_flops, 2.0 * 6 * 32 * 12 + projections + 2 * 2.0 * 7 * 16 +
                                                   2.0 * 16 * 12 + 2 * 2.0 * 12 * 20 +
                                                   2.0 * 12 * 5);
}

TEST(ModelCost, CountsWeightsFourTimesAndActivationsPerSample) {
  const auto one = model_cost(tiny_vit(), 1), three = model_cost(tiny_vit(), 3);
  EXPECT_EQ(one.weight_bytes, 4.0 * static_cast<double>(one.parameters));
  const double activations = one.training_bytes - 4 * one.weight_bytes;
  EXPECT_GT(activations, 0);
  EXPECT_EQ(three.training_bytes, 4 * one.weight_bytes + 3 * activations);
}

TEST(ModelCost, CountsSavedEncodingsIfTheyFitTheWorkspace) {
  const ModelOptions model = paper_table("gpt").rows[2].model;
  ASSERT_EQ(model.position.method, Method::translution);
  // Six layers with a query and a key for each pair; 27 samples of a layer take 510 of 512 MiB.
  const auto fits = model_cost(model, 27), too_many = model_cost(model, 28);
  EXPECT_EQ(fits.kept_bytes, 27 * 6 * 2 * 4.0 * (160 * 161 / 2) * 192);
  EXPECT_EQ(too_many.kept_bytes, 0);
  EXPECT_LT(too_many.training_bytes, fits.training_bytes);
}

}  // namespace
}  // namespace translution
