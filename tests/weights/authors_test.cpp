#include "translution/models/authors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/weights/golden.h"
#include "translution/models/cost.h"
#include "translution/models/settings.h"

namespace translution::testing {

using namespace detail;

namespace {

using ::testing::HasSubstr;

constexpr int64_t kHeads = 3, kDimHead = 4, kDim = 10, kRelativeDim = 2;

// ------------------------------------------------------------- their layer, from its definition

// Table row of the pair (a, c): the offset a - c, or one of the class token's rows behind the
// offsets: both are the class token, a is, c is.
at::Tensor pair_rows(int64_t height, int64_t width) {
  const int64_t patches = height * width, offsets = (2 * height - 1) * (2 * width - 1);
  auto rows = at::empty({patches + 1, patches + 1}, at::kLong);
  for (int64_t a = 0; a <= patches; ++a)
    for (int64_t c = 0; c <= patches; ++c) {
      const int64_t dy = (a - 1) / width - (c - 1) / width, dx = (a - 1) % width - (c - 1) % width;
      const int64_t offset = (dy + height - 1) * (2 * width - 1) + dx + width - 1;
      rows[a][c] = a == 0 ? offsets + (c == 0 ? 0 : 1) : c == 0 ? offsets + 2 : offset;
    }
  return rows;
}

struct TheirLayer {
  const NamedTensors& state;
  at::Tensor rows;  // [N,N]
  at::Tensor x;     // [B,N,C], after the norm

  bool has(const std::string& name) const { return state.count(name) == 1; }

  // Entry (a, c): features of c times the matrix of the pair.
  at::Tensor per_pair(const at::Tensor& features, const std::string& name) const {
    const auto table = state.at(name + ".unique_params");
    return at::einsum("bcx,acxe->bace", {features, table.index({rows})});
  }
  at::Tensor split(const at::Tensor& t) const { return t.unflatten(-1, {kHeads, -1}); }

  // Queries of (i, j) use the entry (j, i).
  at::Tensor role(char letter, const at::Tensor& features, const std::string& name) const {
    const auto pairs = split(per_pair(features, name));  // [B,N,N,H,D]
    return letter == 'q' ? pairs.transpose(1, 2) : pairs;
  }
  // The same for all pairs, broadcast over the other token.
  at::Tensor broadcast(char letter, const at::Tensor& features) const {
    return split(features).unsqueeze(letter == 'q' ? 2 : 1);
  }

  // A role from the matrix that holds several roles, named by their letters.
  at::Tensor shared(char letter) const {
    for (const std::string letters : {"qkv", "qk", "qv", "kv", "q", "k", "v"}) {
      const auto index = letters.find(letter);
      if (index == std::string::npos || !has("to_" + letters + ".weight")) continue;
      const auto parts = state.at("to_" + letters + ".weight").chunk(letters.size(), 0);
      return x.matmul(parts[index].t());
    }
    return {};
  }

  at::Tensor full(char letter) const {
    const std::string name = std::string("to_") + letter;
    return has(name + ".unique_params") ? role(letter, x, name) : broadcast(letter, shared(letter));
  }
  at::Tensor small(char letter) const {
    const std::string name = std::string("to_") + letter;
    const auto features = x.matmul(state.at(name + "1.weight").t());
    return has(name + "2.unique_params") ? role(letter, features, name + "2")
                                         : broadcast(letter, features);
  }

  static at::Tensor mix(const at::Tensor& attention, const at::Tensor& values) {
    return (attention.unsqueeze(-1) * values).sum(2).flatten(2);  // [B,N,H*D]
  }

  at::Tensor forward() const {
    auto scores = (full('q') * full('k')).sum(-1);  // [B,N,N,H]
    if (has("to_q1.weight")) scores = (scores + (small('q') * small('k')).sum(-1)) / 2;
    const auto attention = (scores / std::sqrt(double(kDimHead))).softmax(2);
    auto out = mix(attention, full('v'));
    if (has("to_v1.weight"))
      out = (out + mix(attention, small('v')).matmul(state.at("to_v3.weight").t())) / 2;
    return at::linear(out, state.at("to_out.0.weight"), state.at("to_out.0.bias"));
  }
};

NamedTensors random_state(const Links& links) {
  torch::manual_seed(5);
  NamedTensors state;
  for (const auto& link : links)
    if (!link.theirs.empty())
      state[link.theirs] = link.value.defined() ? link.value.to(at::kDouble)
                                                : at::randn(link.shape, at::kDouble) / 2;
  return state;
}

TEST(AuthorsLayer, AgreesWithItsDefinitionOnAnyGrid) {
  for (const auto& [height, width] : {std::pair{5, 3}, {1, 4}, {4, 1}, {1, 1}, {3, 3}})
    for (const auto& family : authors_families()) {
      if (family.find("rope") != std::string::npos) continue;  // covered by the golden cases
      SCOPED_TRACE(join(family, " on ", height, "x", width));
      const auto module = read_authors_module(family, "layer",
                                              {{"grid", join("(", height, ", ", width, ")")},
                                               {"cls", "True"},
                                               {"dim", std::to_string(kDim)},
                                               {"heads", std::to_string(kHeads)},
                                               {"dim_head", std::to_string(kDimHead)},
                                               {"relative_dim", std::to_string(kRelativeDim)}});
      const auto state = random_state(module.links());
      const auto x = at::randn({2, height * width + 1, kDim}, at::kDouble);
      const auto normal = at::layer_norm(x, {kDim}, state.at("norm.weight"), state.at("norm.bias"));
      Ours ours(module);
      ours.load(to_ours(module.links(), state, "random"));
      EXPECT_LE(relative_error(ours.forward(x),
                               TheirLayer{state, pair_rows(height, width), normal}.forward()),
                1e-10);
    }
}

TEST(AuthorsLayer, OneHeadAsWideAsTheFeaturesHasNoOutputProjection) {
  const auto module =
      read_authors_module("former", "layer", {{"dim", "8"}, {"heads", "1"}, {"dim_head", "8"}});
  const auto links = module.links();
  const auto state = random_state(links);
  EXPECT_EQ(state.count("to_out.0.weight"), 0u);
  auto ours = to_ours(links, state, "random");
  EXPECT_TRUE(at::equal(ours.at("attention.out.weight"), at::eye(8, at::kDouble)));
  EXPECT_EQ(to_theirs(links, ours, "ours").size(), state.size());
  ours["attention.out.bias"][3] = 1;
  try {
    to_theirs(links, ours, "ours");
    FAIL() << "a bias was dropped";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'attention.out.bias' is not the identity, without bias"));
  }
}

// ------------------------------------------------------------------------------- their names

int64_t count(const Links& links) {
  int64_t total = 0;
  for (const auto& link : links)
    if (!link.ours.empty()) total += c10::multiply_integers(link.shape);
  return total;
}

TEST(AuthorsModels, LinksCoverEveryParameter) {
  for (const auto& name : authors_model_names())
    for (const char* size : {"/32", "-40"}) {
      SCOPED_TRACE(name + size);
      const auto model = ModelOptions::named(name + size);
      const auto links = authors_links(model);
      EXPECT_EQ(count(links), model_cost(model).parameters);
      std::vector<std::string> linked, expected;
      for (const auto& link : links)
        linked.insert(linked.end(), link.ours.begin(), link.ours.end());
      for (const auto& spec : model_parameters(model)) expected.push_back(spec.name);
      EXPECT_THAT(linked, ::testing::UnorderedElementsAreArray(expected));
    }
}

TEST(AuthorsModels, NamesSetMethodRolesMixingAndInit) {
  const auto model = ModelOptions::named("lor_qv_small/56");
  EXPECT_EQ(model.name(), "vit-c/56");
  EXPECT_EQ(model.position.method, Method::alpha_translution);
  EXPECT_EQ(model.position.roles.str(), "qv");
  EXPECT_EQ(model.position.mixing, Mixing::mean);
  EXPECT_EQ(model.position.relative_dim, 16);
  EXPECT_EQ(model.init, Init::authors);
  EXPECT_FALSE(model.embeds_input());
  const auto former = ModelOptions::named("former_base-1024");
  EXPECT_EQ(former.name(), "gpt-base-1024");
  EXPECT_TRUE(former.embeds_input());
  EXPECT_TRUE(ModelOptions::named("rope_former_tiny").embeds_input());
  EXPECT_FALSE(ModelOptions::named("rope_former_tiny-64").embeds_input());
  EXPECT_TRUE(ModelOptions::named("lor_rope_mini").position.rotary);
  const auto rope = ModelOptions::named("rope_mini");  // computes what `v` does, despite its name
  EXPECT_EQ(rope.position.roles.str(), "v");
  EXPECT_FALSE(rope.position.rotary);
  EXPECT_GT(authors_links(rope, "rope_mini/16").size(), authors_links(rope, "v_mini").size());
}

TEST(AuthorsModels, AreReadBackFromTheirSettings) {
  for (const auto& name : authors_model_names()) {
    auto model = ModelOptions::named(name);
    model.hybrid_layers = 2;
    const auto texts = model_texts(model);
    const auto again = read_model({texts.begin(), texts.end()});
    EXPECT_EQ(model_texts(again), texts) << name;
    EXPECT_EQ(again.attention(3).position().angles, Angles::in_float) << name;
  }
}

TEST(AuthorsModels, SuggestsTheNearestNameForAnUnknownOne) {
  for (const auto& [wrong, near] : {std::pair{"lor_qkv_tinny", "lor_qkv_tiny"},
                                    {"fomer_base", "former_base"},
                                    {"vit-d", "vit-a"}})
    try {
      ModelOptions::named(wrong);
      ADD_FAILURE() << wrong;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr(near));
    }
}

TEST(ModelOptions, ReadsAnArchitectureWrittenOut) {
  const auto model = ModelOptions::named("gpt-3x128x2x256-40");
  EXPECT_EQ(model.architecture.depth, 3);
  EXPECT_EQ(model.architecture.dim_head, 64);
  EXPECT_EQ(model.name(), "gpt-3x128x2x256-40");
  EXPECT_EQ(ModelOptions::named("vit-3x100x2x256x8/4").architecture.dim_head, 8);
  EXPECT_EQ(architecture_of(6, 192, 3, 768, 64).name, "a");
  EXPECT_EQ(architecture_of(6, 192, 3, 768, 32).name, "6x192x3x768x32");
  EXPECT_THROW(ModelOptions::named("vit-3x100/4"), std::invalid_argument);
  EXPECT_THROW(ModelOptions::named("vit-3x100x0x8/4").check(), std::invalid_argument);
}

}  // namespace
}  // namespace translution::testing
