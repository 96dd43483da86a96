// The paper's claims about Translution, tested on the ops.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/cases.h"
#include "tests/support/expect.h"

namespace translution::testing {
namespace {

constexpr const char* kRoleNames[] = {"q", "k", "v"};

double largest(const at::Tensor& t) { return t.abs().max().item<double>(); }

Config on_grid(Method method, std::vector<int64_t> grid, bool cls, bool causal = false) {
  Config config;
  config.method = method;
  config.grid = std::move(grid);
  config.cls = cls;
  config.causal = causal;
  config.H = 2;
  return config;
}

// --- Translution contains self-attention

TEST(Claim, EqualMatricesForAllOffsetsAreSelfAttentionWithoutPositions) {
  for (const bool cls : {false, true})
    for (const bool causal : {false, true}) {
      const Case relative(on_grid(Method::translution, {3, 4}, cls, causal));
      const Case plain(on_grid(Method::self_attention_no_pos, {3, 4}, cls, causal));
      SCOPED_TRACE(relative.config().str());
      auto inputs = plain.inputs_with_grad();
      const auto out = plain.run(inputs);
      auto random = generator("equal matrices");
      const auto weight = normal(out.sizes(), random);
      const auto expected = gradients(plain, inputs, weight);

      Inputs repeated{{"x", inputs["x"]}};
      for (const char* role : kRoleNames)
        repeated[role] = inputs[role].detach().expand_as(relative.inputs().at(role)).contiguous();
      EXPECT_LE(error(relative.run(repeated), out), kRounding);
      for (const char* role : kRoleNames) repeated[role].requires_grad_(true);
      const auto got = gradients(relative, repeated, weight);
      EXPECT_LE(error(got.at("x"), expected.at("x")), kRounding);
      for (const char* role : kRoleNames)  // the shared matrix is the matrix of every slot
        EXPECT_LE(error(got.at(role).sum(0), expected.at(role)), kRounding) << role;
    }
}

TEST(Claim, AlphaWithoutTheSmallSpaceIsSelfAttentionWithoutPositions) {
  for (const Mixing mixing : {Mixing::sum, Mixing::mean})
    for (const bool causal : {false, true}) {
      auto config = on_grid(Method::alpha_translution, {3, 4}, true, causal);
      config.roles = Roles::parse("none");
      config.mixing = mixing;
      const Case alpha(config);
      const Case plain(on_grid(Method::self_attention_no_pos, {3, 4}, true, causal));
      ASSERT_EQ(alpha.inputs().size(), 4u);  // x and the shared weights
      EXPECT_EQ(error(alpha.run(), plain.run(alpha.inputs())), 0);
    }
}

TEST(Claim, AlphaWithAZeroSmallSpaceIsSelfAttentionWithoutPositions) {
  const Case alpha(on_grid(Method::alpha_translution, {3, 4}, true));
  const Case plain(on_grid(Method::self_attention_no_pos, {3, 4}, true));
  auto inputs = alpha.inputs();
  for (const char* name : {"table_q", "table_v"}) inputs[name] = at::zeros_like(inputs[name]);
  EXPECT_LE(error(alpha.run(inputs), plain.run(inputs)), kRounding);
  EXPECT_GT(error(alpha.run(), plain.run(inputs)), 0.01);
}

// --- a causal output depends on the past alone

TEST(Claim, CausalOutputsAreExactlyUnchangedWhenLaterTokensChange) {
  for (const auto& entry : kMethods)
    for (const bool mask_only : {false, true}) {
      auto config = on_grid(entry.value, {7}, true, /*causal=*/true);
      config.mask_only = mask_only;
      config.D = 4;
      SCOPED_TRACE(config.str());
      const Case c(config);
      const auto out = c.run();
      auto random = generator("later tokens");
      for (int64_t i = 0; i + 1 < config.tokens(); ++i) {
        auto changed = c.inputs();
        changed["x"] = changed["x"].clone();
        changed["x"].slice(1, i + 1).normal_(0, 3, random);
        const auto other = c.run(changed);
        EXPECT_TRUE(at::equal(other.slice(1, 0, i + 1), out.slice(1, 0, i + 1))) << i;
        EXPECT_GT(largest(other.select(1, i + 1) - out.select(1, i + 1)), 1e-3) << i;
      }
    }
}

// --- the features of an object do not change when it moves

constexpr int64_t kSide = 9;

// A random object of 2 x 3 patches at (row, column) on an empty background, [2, 81, C].
at::Tensor picture(int64_t row, int64_t column, int64_t C) {
  auto random = generator("object");
  const auto object = normal({2, 2, 3, C}, random);
  auto image = at::zeros({2, kSide, kSide, C}, at::kDouble);
  image.slice(1, row, row + 2).slice(2, column, column + 3).copy_(object);
  return image.view({2, kSide * kSide, C});
}

// The largest difference between the outputs before and after the object moves by (down, right),
// compared at positions moved by the same amount.
double change_when_moved(const Case& c, int64_t down, int64_t right) {
  auto inputs = c.inputs();
  const auto at = [&](int64_t row, int64_t column) {
    inputs["x"] = picture(row, column, c.config().C);
    const auto out = c.run(inputs);
    return out.view({2, kSide, kSide, out.size(2)});
  };
  const auto before = at(2, 1), after = at(2 + down, 1 + right);
  const auto expected = before.slice(1, 0, kSide - down).slice(2, 0, kSide - right);
  EXPECT_GT(largest(expected), 0.01);
  return error(after.slice(1, down).slice(2, right), expected);
}

TEST(Claim, FeaturesMoveWithAnObjectOnAnEmptyBackground) {
  // Empty patches are zero, so their scores and values are 0 at any offset. Only the offsets within
  // the object matter, and they do not change.
  for (const Method method :
       {Method::translution, Method::alpha_translution, Method::self_attention_no_pos}) {
    const Case c(on_grid(method, {kSide, kSide}, false));
    SCOPED_TRACE(c.config().str());
    EXPECT_LE(change_when_moved(c, 4, 2), kRounding);
    EXPECT_LE(change_when_moved(c, 1, 5), kRounding);
  }
}

TEST(Claim, FeaturesDoNotMoveWithAnObjectForAMatrixPerTokenPair) {
  auto config = on_grid(Method::translution, {kSide, kSide}, false);
  config.encoding = Encoding::absolute;
  config.H = config.D = 1;
  config.C = 2;
  EXPECT_GT(change_when_moved(Case(config), 4, 2), 0.01);
}

// --- the class token's three directions

TEST(Claim, EachDirectionOfTheClassTokenAffectsOnlyItsOwnOutputs) {
  const auto config = on_grid(Method::translution, {3, 2}, true);
  const Case c(config);
  const auto out = c.run();
  const int64_t M = c.inputs().at("q").size(0);
  struct Direction {
    const char* name;
    int64_t slot;
    bool affects_cls, affects_patches;
  };
  for (const Direction& d :
       {Direction{"itself", M - 3, true, false}, Direction{"in", M - 2, true, false},
        Direction{"out", M - 1, false, true}, Direction{"offset zero", (M - 3) / 2, false, true}})
    for (const char* role : kRoleNames) {
      SCOPED_TRACE(std::string(role) + ", " + d.name);
      auto inputs = c.inputs();
      inputs[role] = inputs[role].clone();
      inputs[role][d.slot].neg_();
      const auto change = (c.run(inputs) - out).abs().amax({0, 2});  // [N]
      const auto affects = [](const at::Tensor& rows) {              // all rows or none
        if (largest(rows) == 0) return false;
        EXPECT_GT(rows.min().item<double>(), 1e-6);
        return true;
      };
      EXPECT_EQ(affects(change.slice(0, 0, 1)), d.affects_cls);
      EXPECT_EQ(affects(change.slice(0, 1)), d.affects_patches);
    }
}

// --- the memory-saving form of alpha

// v_ij = f_j (Wv1 Wv[delta] Wv2 + Wv) as a tensor for all pairs, with one head, as in the paper.
at::Tensor direct_alpha(const Inputs& in, const oracle::Pairing& pairing) {
  const int64_t N = pairing.tokens;
  const auto slot = at::tensor(pairing.slot, at::kLong),
             key = at::tensor(pairing.key_slot, at::kLong);
  const auto& x = in.at("x");
  const auto pairs = [&](const char* name, const at::Tensor& index) {  // [N,N,r,r]
    const auto& table = in.at(name);
    return table.index_select(0, index).view({N, N, table.size(1), table.size(2)});
  };
  const auto q = at::einsum("bic,ijcd->bijd", {x.matmul(in.at("down_q")), pairs("table_q", slot)});
  const auto k = at::einsum("bjc,ijcd->bijd", {x.matmul(in.at("down_k")), pairs("table_k", key)});
  const auto content = x.matmul(in.at("q")).matmul(x.matmul(in.at("k")).transpose(1, 2));
  const double D = static_cast<double>(in.at("q").size(1));
  const auto a = at::softmax(((q * k).sum(-1) + content) / std::sqrt(D), -1);
  const auto matrix =
      in.at("down_v").matmul(pairs("table_v", slot)).matmul(in.at("up")) + in.at("v");
  const auto v = at::einsum("bjc,ijcd->bijd", {x, matrix});
  return at::einsum("bij,bijd->bid", {a, v});
}

TEST(Claim, TheMemorySavingFormOfAlphaEqualsTheDirectOne) {
  for (const bool cls : {false, true}) {
    auto config = on_grid(Method::alpha_translution, {3, 4}, cls);
    config.H = 1;
    const Case c(config);
    EXPECT_LE(error(c.run(), direct_alpha(c.inputs(), c.oracle_call().pairing)), kRounding);
  }
}

// --- absolute matrices contain the relative ones

TEST(Claim, AbsoluteMatricesCopiedFromRelativeOnesGiveTheSameOutput) {
  for (const bool cls : {false, true})
    for (const bool causal : {false, true}) {
      auto config = on_grid(Method::translution, {3, 2}, cls, causal);
      const Case relative(config);
      config.encoding = Encoding::absolute;
      const Case absolute(config);
      SCOPED_TRACE(relative.config().str());
      const auto from = relative.oracle_call().pairing, to = absolute.oracle_call().pairing;
      const auto source = [&](bool key) {  // [pairs]: the offset slot of each pair's slot
        auto slots = at::zeros({to.slots}, at::kLong);
        for (size_t p = 0; p < from.slot.size(); ++p)
          if (from.slot[p] >= 0)
            slots[key ? to.key_slot[p] : to.slot[p]] = key ? from.key_slot[p] : from.slot[p];
        return slots;
      };
      const auto weights = relative.inputs_with_grad();
      Inputs filled{{"x", weights.at("x")}};
      for (const char* role : kRoleNames)
        filled[role] = weights.at(role).index_select(0, source(role[0] == 'k'));
      EXPECT_LE(error(absolute.run(filled), relative.run(weights)), kRounding);
    }
}

}  // namespace
}  // namespace translution::testing
