#include <ATen/ATen.h>

#include <cmath>

#include "tests/bad_input/wrong_calls.h"
#include "translution/ops/convolution.h"
#include "translution/ops/methods.h"
#include "translution/ops/rotary.h"

namespace translution {
namespace {

// 5 tokens of 6 channels; weights for 3 heads of 4 channels and 9 slots.
at::Tensor features() { return at::zeros({2, 5, 6}); }
at::Tensor matrix() { return at::zeros({6, 12}); }
at::Tensor table() { return at::zeros({9, 6, 12}); }

AttentionCall options() {
  AttentionCall call;
  call.heads = 3;
  call.pairs.text = "5";
  return call;
}

// A valid call of translution with one change.
template <typename Change>
std::function<void()> translution_with(Change change) {
  return [change] {
    at::Tensor x = features();
    RoleWeights weights{table(), table(), table()};
    AttentionCall call = options();
    change(x, weights, call);
    translution(x, weights, call);
  };
}

// A valid call of alpha_translution, with low-rank size 6, with one change.
template <typename Change>
std::function<void()> alpha_with(Change change) {
  return [change] {
    AlphaWeights weights;
    weights.shared = {matrix(), matrix(), matrix()};
    weights.down = {at::zeros({6, 6}), at::zeros({6, 6}), at::zeros({6, 6})};
    weights.table = {at::zeros({9, 6, 6}), at::zeros({9, 6, 6}), at::zeros({9, 6, 6})};
    weights.up = at::zeros({6, 12});
    AttentionCall call = options();
    change(weights, call);
    alpha_translution(features(), weights, call);
  };
}

template <typename Change>
std::function<void()> self_attention_with(Change change) {
  return [change] {
    RoleWeights weights{matrix(), matrix(), matrix()};
    PositionTerms terms;
    AttentionCall call = options();
    change(weights, terms, call);
    self_attention(features(), weights, terms, call);
  };
}

std::vector<WrongCall> wrong_translutions() {
  return {
      {"translution without x", translution_with([](auto& x, auto&, auto&) { x = at::Tensor(); }),
       "translution: x [B, N, C] is missing"},
      {"translution of integers",
       translution_with([](auto& x, auto&, auto&) { x = x.to(at::kLong); }),
       "translution: x must hold floating-point numbers, got Long; convert it"},
      {"translution of one sample", translution_with([](auto& x, auto&, auto&) { x = x[0]; }),
       "translution: x must be [B, N, C], got [5, 6]"},
      {"translution of no tokens", translution_with([](auto& x, auto&, auto&) {
         x = at::zeros({2, 0, 6});
       }),
       "translution: expected one or more tokens, got x [2, 0, 6]"},
      {"translution of another number of tokens", translution_with([](auto& x, auto&, auto&) {
         x = at::zeros({2, 6, 6});
       }),
       "pairs: expected 1 to 5 tokens, got 6"},
      {"translution of another number of channels", translution_with([](auto& x, auto&, auto&) {
         x = at::zeros({2, 5, 7});
       }),
       "translution: q has size 6 in dimension 1, expected 7 (the channels that it multiplies); "
       "its "
       "shape is [9, 6, 12]"},
      {"translution without v", translution_with([](auto&, auto& w, auto&) { w.v = at::Tensor(); }),
       "translution: v [slots, C, width] or [C, width] is missing"},
      {"translution without q", translution_with([](auto&, auto& w, auto&) { w.q = at::Tensor(); }),
       "translution: q [slots, C, width] or [C, width] is missing"},
      {"translution with a scalar for v",
       translution_with([](auto&, auto& w, auto&) { w.v = at::zeros({}); }),
       "translution: v must be [slots, C, width] or [C, width], got []"},
      {"translution with a vector for k",
       translution_with([](auto&, auto& w, auto&) { w.k = at::zeros({12}); }),
       "translution: k must be [slots, C, width] or [C, width], got [12]"},
      {"translution with q of another width", translution_with([](auto&, auto& w, auto&) {
         w.q = at::zeros({9, 6, 9});
       }),
       "translution: q has size 9 in dimension 2, expected 12 (the width of the other roles); its "
       "shape is [9, 6, 9]"},
      {"translution with a shared k of another width", translution_with([](auto&, auto& w, auto&) {
         w.k = at::zeros({6, 9});
       }),
       "translution: k has size 9 in dimension 1, expected 12 (the width of the other roles); its "
       "shape is [6, 9]"},
      {"translution with heads that do not divide the width",
       translution_with([](auto&, auto&, auto& call) { call.heads = 8; }),
       "translution: the width 12 of q does not split evenly among 8 heads; expected a multiple of "
       "8"},
      {"translution with negative heads",
       translution_with([](auto&, auto&, auto& call) { call.heads = -1; }),
       "translution: expected one or more heads, got -1"},
      {"translution with weights in double",
       translution_with([](auto&, auto& w, auto&) { w.k = w.k.to(at::kDouble); }),
       "translution: k is Double but x is Float; convert one of them"},
      {"translution with weights on another device",
       translution_with([](auto&, auto& w, auto&) { w.v = w.v.to(at::kMeta); }),
       "translution: v is on meta but x is on cpu; move one of them"},
      {"translution without slots",
       translution_with([](auto&, auto&, auto& call) { call.pairs.text = "causal"; }),
       "attention: relative terms need pairs with slots, such as '7x7 cls' or '160 causal', got "
       "'causal'"},
      {"translution with too few slots",
       translution_with([](auto&, auto& w, auto&) { w.v = w.v.narrow(0, 0, 4); }),
       "attention: table_v has 4 rows, the pairs '5' have 9 slots; build both for the same "
       "offsets"},
      {"translution with rows out of range", translution_with([](auto&, auto&, auto& call) {
         call.pairs.rows = {5, 5};
       }),
       "translution: expected query rows from 0 to 4, got 5"},
      {"translution with relative queries and angles",
       translution_with([](auto&, auto&, auto& call) {
         call.angles = at::zeros({5, 2});
       }),
       "translution: rotary angles rotate shared queries and keys, but q or k is relative; leave "
       "out the angles"},
  };
}

std::vector<WrongCall> wrong_alphas() {
  return {
      {"alpha with two of three shared",
       alpha_with([](auto& w, auto&) { w.shared.k = at::Tensor(); }),
       "alpha_translution: expected shared q, k and v together; pass all three or none"},
      {"alpha without v but with q", alpha_with([](auto& w, auto&) { w.shared.v = at::Tensor(); }),
       "alpha_translution: expected shared q, k and v together; pass all three or none"},
      {"alpha without down", alpha_with([](auto& w, auto&) { w.down.q = at::Tensor(); }),
       "alpha_translution: down q [C, width] is missing"},
      {"alpha without up", alpha_with([](auto& w, auto&) { w.up = at::Tensor(); }),
       "alpha_translution: up [r, heads * D] is missing"},
      {"alpha with up of another width", alpha_with([](auto& w, auto&) {
         w.up = at::zeros({6, 9});
       }),
       "alpha_translution: up has size 9 in dimension 1, expected 12 (the width of the shared "
       "weights); its shape is [6, 9]"},
      {"alpha with up of another low-rank size", alpha_with([](auto& w, auto&) {
         w.up = at::zeros({5, 12});
       }),
       "alpha_translution: up has size 5 in dimension 0, expected 6 (the width of the small "
       "space); "
       "its shape is [5, 12]"},
      {"alpha with a table that is not square", alpha_with([](auto& w, auto&) {
         w.table.q = at::zeros({9, 6, 3});
       }),
       "alpha_translution: table q has size 3 in dimension 2, expected 6 (the width of the other "
       "roles); its shape is [9, 6, 3]"},
      {"alpha with a scalar for shared v",
       alpha_with([](auto& w, auto&) { w.shared.v = at::zeros({}); }),
       "alpha_translution: shared v must be [C, width], got []"},
  };
}

std::vector<WrongCall> wrong_self_attentions() {
  return {
      {"self-attention without q",
       self_attention_with([](auto& w, auto&, auto&) { w.q = at::Tensor(); }),
       "self_attention: q [C, width] is missing"},
      {"self-attention with a table",
       self_attention_with([](auto& w, auto&, auto&) { w.v = table(); }),
       "self_attention: v must be [C, width], got [9, 6, 12]"},
      {"self-attention with narrow key vectors", self_attention_with([](auto&, auto& t, auto&) {
         t.key_vectors = at::zeros({9, 6});
       }),
       "self_attention: key_vectors has size 6 in dimension 1, expected 12 (the width of the "
       "roles); "
       "its shape is [9, 6]"},
      {"self-attention with one value vector",
       self_attention_with([](auto&, auto& t, auto&) { t.value_vectors = at::zeros({12}); }),
       "self_attention: value_vectors must be [slots, heads * D], got [12]"},
      {"self-attention with a gate alone",
       self_attention_with([](auto&, auto& t, auto&) { t.gate = at::zeros({3}); }),
       "attention: expected gate and position together, got only gate"},
      {"self-attention with too few angles", self_attention_with([](auto&, auto&, auto& call) {
         call.angles = at::zeros({3, 2});
         call.pairs.rows = {4};
       }),
       "self_attention: rotary angles must be [5, D / 2], one row per token of x, got [3, 2]"},
      {"self-attention with too narrow angles", self_attention_with([](auto&, auto&, auto& call) {
         call.angles = at::zeros({5, 1});
       }),
       "rotary: angles has size 1 in dimension 1, expected 2 (half the channels of a head); its "
       "shape is [5, 1]"},
  };
}

std::vector<WrongCall> wrong_others() {
  const PairsName pairs{"5"};
  return {
      {"rotary without x",
       [] {
         rotary({}, at::zeros({5, 3}), 1);
       },
       "rotary: x [B, N, heads * D] is missing"},
      {"rotary without angles", [] { rotary(features(), {}, 1); },
       "rotary: angles [N, D / 2] are missing; call rotary_angles"},
      {"rotary with integer angles",
       [] {
         rotary(features(), at::zeros({5, 3}, at::kLong), 1);
       },
       "rotary: angles must be a float tensor [N, D / 2], got Long [5, 3]"},
      {"rotary of an odd head",
       [] {
         rotary(features(), at::zeros({5, 1}), 2);
       },
       "rotary: the width 6 of x does not split into pairs for 2 heads; expected a multiple of 4"},
      {"rotary with angles that require gradients",
       [] {
         rotary(features(), at::zeros({5, 3}).requires_grad_(), 1);
       },
       "rotary: angles are fixed and take no gradient; detach them"},
      {"angles of a zero-sized grid",
       [] {
         rotary_angles({4, 0}, false, 8);
       },
       "offsets: expected a grid with sides of 1 or more, got 4x0"},
      {"angles of no grid", [] { rotary_angles({}, false, 8); },
       "offsets: expected a grid of one or more sides, got none"},
      {"angles of a head that does not split",
       [] {
         rotary_angles({4, 4}, false, 6);
       },
       "rotary: a head of 6 channels does not split into pairs for 2 axes; expected a multiple of "
       "4"},
      {"angles with a NaN base", [] { rotary_angles({4}, false, 8, std::nan("")); },
       "rotary: expected a finite base above 0, got nan"},
      {"convolution without x", [pairs] { convolution({}, table(), pairs); },
       "convolution: x [B, N, C] is missing"},
      {"convolution without slots", [] { convolution(features(), table(), {"causal"}); },
       "convolution: expected pairs with slots, such as '7x7 window=1', got 'causal'"},
      {"convolution without a kernel", [pairs] { convolution(features(), {}, pairs); },
       "convolution: weight [slots, C, width] is missing"},
      {"convolution of no tokens",
       [pairs] {
         convolution(at::zeros({2, 0, 6}), table(), pairs);
       },
       "convolution: expected one or more tokens, got x [2, 0, 6]"},
      {"convolution of another number of channels",
       [pairs] {
         convolution(at::zeros({2, 5, 7}), table(), pairs);
       },
       "convolution: weight has size 6 in dimension 1, expected 7 (the channels of x); its shape "
       "is "
       "[9, 6, 12]"},
      {"convolution with too small a kernel",
       [pairs] { convolution(features(), table().narrow(0, 0, 8), pairs); },
       "convolution: weight has size 8 in dimension 0, expected 9 (the slots of the pairs); its "
       "shape is [8, 6, 12]"},
      {"convolution with rows out of range",
       [] {
         convolution(features(), table(), {"5", {}, {-1}});
       },
       "pairs: expected query rows from 0 to 4, got -1 to -1"},
  };
}

}  // namespace

std::vector<WrongCall> wrong_method_calls() {
  std::vector<WrongCall> all;
  for (const auto& calls :
       {wrong_translutions(), wrong_alphas(), wrong_self_attentions(), wrong_others()})
    all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

}  // namespace translution
