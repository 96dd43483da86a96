#include "translution/models/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/models/tiny_models.h"
#include "translution/models/options_json.h"
#include "translution/models/settings.h"

namespace translution {
namespace {

TEST(ModelOptions, AreReadFromNamesAndWrittenBack) {
  for (const auto& architecture : architectures()) {
    const auto vit = ModelOptions::named("vit-" + architecture.name + "/56");
    EXPECT_EQ(vit.family, Family::vit);
    EXPECT_EQ(vit.architecture.dim, architecture.dim);
    EXPECT_EQ(vit.patch_size, 56);
    EXPECT_EQ(vit.name(), "vit-" + architecture.name + "/56");
    const auto gpt = ModelOptions::named("gpt-" + architecture.name + "-33");
    EXPECT_EQ(gpt.family, Family::gpt);
    EXPECT_EQ(gpt.architecture.depth, architecture.depth);
    EXPECT_EQ(gpt.length, 33);
    EXPECT_EQ(gpt.name(), "gpt-" + architecture.name + "-33");
  }
}

TEST(ModelOptions, ANameWithoutASizeHasTheDefaultSize) {
  EXPECT_EQ(ModelOptions::named("vit-base").name(), "vit-base/16");
  EXPECT_EQ(ModelOptions::named("gpt-c").name(), "gpt-c-160");
  EXPECT_EQ(ModelOptions::named("vit-a/999999").patch_size, 999999);
}

TEST(ModelOptions, ArchitecturesABCAreThePapers) {
  const auto& a = architectures();
  const auto expect = [](const Architecture& b, int64_t depth, int64_t dim, int64_t heads) {
    EXPECT_EQ((std::vector{b.depth, b.dim, b.heads, b.mlp_dim, b.dim_head}),
              (std::vector<int64_t>{depth, dim, heads, 4 * dim, 64}))
        << b.name;
  };
  expect(a.at(0), 6, 192, 3);
  expect(a.at(1), 12, 192, 3);
  expect(a.at(2), 12, 384, 6);
}

TEST(ModelOptions, TheGridIsThePatchesOrTheLength) {
  EXPECT_EQ(tiny_vit().grid(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(tiny_vit().tokens(), 7);
  EXPECT_EQ(tiny_vit({}, Pooling::mean).tokens(), 6);
  EXPECT_EQ(tiny_gpt().grid(), (std::vector<int64_t>{7}));
  EXPECT_EQ(tiny_gpt().tokens(), 7);
  EXPECT_FALSE(tiny_gpt().has_cls());
  EXPECT_TRUE(tiny_gpt().is_causal());
}

TEST(ModelOptions, TheInputEmbeddingFollowsTheMethodUnlessSet) {
  for (const auto& [name, position] : every_method()) {
    auto options = tiny_vit(position);
    EXPECT_EQ(options.embeds_input(), position.method == Method::self_attention) << name;
    options.input_embedding = true;
    EXPECT_TRUE(options.embeds_input()) << name;
    options.input_embedding = false;
    EXPECT_FALSE(options.embeds_input()) << name;
  }
}

TEST(ModelOptions, AttentionOfALayerHasTheModelsOptions) {
  auto options = tiny_vit();
  options.dropout = 0.25;
  options.init = Init::authors;
  options.hybrid_layers = 1;
  const auto first = options.attention(0), second = options.attention(1);
  EXPECT_EQ(first.dim(), 12);
  EXPECT_EQ(first.heads(), 2);
  EXPECT_EQ(first.dim_head(), 8);
  EXPECT_EQ(first.grid(), options.grid());
  EXPECT_TRUE(first.cls());
  EXPECT_FALSE(first.causal());
  EXPECT_EQ(first.dropout(), 0.25);
  EXPECT_EQ(first.init(), Init::authors);
  EXPECT_EQ(first.position().method, Method::translution);
  EXPECT_EQ(second.position().method, Method::self_attention_no_pos);
}

TEST(ModelOptions, EveryMethodPassesTheCheck) {
  for (const auto& [name, position] : every_position()) {
    EXPECT_NO_THROW(tiny_vit(position).check()) << name;
    EXPECT_NO_THROW(tiny_gpt(position).check()) << name;
  }
}

// --- settings

// Texts of values other than `now`, for any type of setting.
std::vector<std::string> other_values(const SettingInfo& setting, const std::string& now) {
  if (setting.type == FieldType::whole) return {"3", "5"};
  if (setting.type == FieldType::real) return {"0.125", "1e-07"};
  if (setting.type == FieldType::sides) return {"6x4"};
  if (setting.type == FieldType::on_off) return {now == "on" ? "off" : "on"};
  return setting.names.empty() ? std::vector<std::string>{"v", "qk", "none"} : setting.names;
}

// Sets one option at a time: it has the value, and no other option changes.
template <typename Options>
void expect_independent(const Settings<Options>& groups, const Options& defaults) {
  for (const auto& group : groups)
    for (const auto& changed : group.settings)
      for (const auto& value : other_values(changed, changed.text(defaults))) {
        auto options = defaults;
        changed.set(options, {changed.name, value});
        for (const auto& other_group : groups)
          for (const auto& setting : other_group.settings)
            EXPECT_EQ(setting.text(options),
                      setting.name == changed.name ? value : setting.text(defaults))
                << changed.name << " " << value << ", " << setting.name;
      }
}

TEST(AttentionOptions, HeadsDivideTheChannelsUnlessDimHeadIsSet) {
  EXPECT_EQ(AttentionOptions(192).heads(3).dim_head(), 64);
  EXPECT_EQ(AttentionOptions(192).dim_head(), 192);
  EXPECT_EQ(AttentionOptions(192).heads(3).dim_head(16).dim(8).dim_head(), 16);
  EXPECT_EQ(attention_from_json(R"({"dim": 8, "heads": 2})").dim_head(), 4);
  EXPECT_EQ(attention_from_json(R"({"dim": 8, "heads": 3, "dim_head": 5})").dim_head(), 5);
  EXPECT_THROW(AttentionOptions(8).heads(3).dim_head(), std::invalid_argument);
}

TEST(Settings, SetTheirOwnOptionAndNoOther) {
  expect_independent(position_settings(), Position());
  expect_independent(attention_settings(), AttentionOptions(8).dim_head(4));
  expect_independent(all_model_settings(), ModelOptions());
}

TEST(Settings, OfALayerReadBackFromJson) {
  const auto defaults = AttentionOptions(8).dim_head(4);
  for (const auto& group : attention_settings())
    for (const auto& setting : group.settings)
      for (const auto& value : other_values(setting, setting.text(defaults))) {
        auto options = defaults;
        setting.set(options, {setting.name, value});
        const auto again = attention_from_json(to_json(options));
        EXPECT_EQ(setting.text(again), value) << setting.name;
        EXPECT_EQ(to_json(again), to_json(options)) << setting.name;
      }
}

TEST(Settings, OfAModelReadBackFromTextsAndJson) {
  auto options = tiny_vit();
  options.image_size = {24, 12};
  options.dropout = 0.1;
  options.hybrid_layers = 1;
  options.input_embedding = true;
  options.qkv_bias = true;
  options.gelu = Gelu::tanh;
  options.position.method = Method::relative_bias;
  options.position.angles = Angles::in_float;
  const auto texts = model_texts(options);
  EXPECT_EQ(model_texts(read_model({texts.begin(), texts.end()})), texts);
  const auto fields = nlohmann::json::parse(to_json(options))["options"];
  EXPECT_EQ(to_json(model_from_json(Family::vit, fields.dump())), to_json(options));
}

TEST(Settings, ShowTheDefaultInTheHelp) {
  std::map<std::string, std::string> help;
  for (const auto& group : model_settings())
    for (const auto& setting : group.settings) help[setting.name] = setting.help_text();
  EXPECT_EQ(help["radius"], "sharing radius, or lattice points to each side (cloud) (0)");
  EXPECT_EQ(help["rest"], "method of the other layers (self_attention_no_pos)");
  EXPECT_EQ(help["input-embedding"],
            "learned position embedding added to the input (set by the method)");
}

}  // namespace
}  // namespace translution
