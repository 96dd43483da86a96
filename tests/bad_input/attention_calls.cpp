#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "tests/bad_input/wrong_calls.h"
#include "translution/ops/attention.h"

namespace translution {
namespace {

struct Call {
  AttentionTerms terms;
  AttentionCall rest;
};

// A valid call: batch 2, 5 tokens, 3 heads of 4 channels, a bias per offset (9 slots).
Call valid() {
  Call call;
  call.terms.q = call.terms.k = call.terms.v = at::zeros({2, 5, 12});
  call.terms.bias = at::zeros({9, 3});
  call.rest.pairs.text = "5";
  call.rest.heads = 3;
  return call;
}

// A valid call with relative queries, keys and values: 6 channels, matrices [6, 12].
Call relative() {
  Call call = valid();
  call.terms = {};
  call.terms.rel_q = call.terms.rel_k = call.terms.rel_v = at::zeros({2, 5, 6});
  call.terms.table_q = call.terms.table_k = call.terms.table_v = at::zeros({9, 6, 12});
  return call;
}

// The same with the first of two parts of the slots, 5 of 9; its group is not registered.
Call part() {
  Call call = relative();
  for (auto* table : {&call.terms.table_q, &call.terms.table_k, &call.terms.table_v})
    *table = at::zeros({5, 6, 12});
  call.rest.pairs.text = "5 part=0/2";
  call.rest.group = "offset";
  return call;
}

// Makes a valid call with one change.
template <typename Change>
std::function<void()> with(Call (*make_valid)(), Change change) {
  return [make_valid, change] {
    Call call = make_valid();
    change(call.terms, call.rest);
    attention(call.terms, call.rest);
  };
}

template <typename Change>
std::function<void()> with(Change change) {
  return with(valid, change);
}

std::vector<WrongCall> wrong_calls() {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  return {
      {"no heads", with([](auto&, auto& s) { s.heads = 0; }),
       "attention: expected one or more heads, got 0"},
      {"a NaN scale", with([nan](auto&, auto& s) { s.scale = nan; }),
       "attention: expected a finite scale, got nan"},
      {"an infinite scale", with([infinity](auto&, auto& s) { s.scale = infinity; }),
       "attention: expected a finite scale, got inf"},
      {"heads that do not divide the width", with([](auto&, auto& s) { s.heads = 5; }),
       "attention: the width 12 of q does not split evenly among 5 heads; expected a multiple of "
       "5"},
      {"rows out of range", with([](auto&, auto& s) {
         s.pairs.rows = {1, 2, 3, 4, 5};
       }),
       "pairs: expected query rows from 0 to 4, got 1 to 5"},
      {"negative rows", with([](auto&, auto& s) {
         s.pairs.rows = {-1, 0, 1, 2, 3};
       }),
       "pairs: expected query rows from 0 to 4, got -1 to 3"},
      {"fewer rows than queries", with([](auto&, auto& s) {
         s.pairs.rows = {0, 1, 2};
       }),
       "attention: q has size 5 in dimension 1, expected 3 (the query rows); its shape is [2, 5, "
       "12]"},
      {"fewer queries than tokens without rows", with([](auto& t, auto& s) {
         t.q = t.q.narrow(1, 0, 2);
         t.bias = at::Tensor();
         s.pairs.text = "causal";
       }),
       "attention: q has size 2 in dimension 1, expected 5 (the query rows); its shape is [2, 2, "
       "12]"},
      {"a key padding mask of numbers", with([](auto&, auto& s) {
         s.mask = at::ones({2, 5});
       }),
       "attention: the key padding mask must be bool, true for a token, got Float; convert it, "
       "such as mask != 0"},
      {"a key padding mask of the wrong shape", with([](auto&, auto& s) {
         s.mask = at::ones({5, 2}, at::kBool);
       }),
       "attention: the key padding mask must be [2, 5], the batch and the tokens, got [5, 2]"},
      {"a key padding mask on another device", with([](auto&, auto& s) {
         s.mask = at::ones({2, 5}, at::TensorOptions(at::kMeta).dtype(at::kBool));
       }),
       "attention: the key padding mask is on meta but q is on cpu; move one of them"},
      {"a mask of the wrong shape", with([](auto&, auto& s) {
         s.keep = at::ones({2, 3, 5, 4});
       }),
       "attention: keep has size 4 in dimension 3, expected 5 (the attention map's shape); its "
       "shape "
       "is [2, 3, 5, 4]"},
      {"a mask of another type", with([](auto&, auto& s) {
         s.keep = at::ones({2, 3, 5, 5}, at::kDouble);
       }),
       "attention: keep is Double but q is Float; convert one of them"},
  };
}

std::vector<WrongCall> wrong_terms() {
  return {
      {"no terms", with([](auto& t, auto&) { t = {}; }),
       "attention: expected terms, got none; pass q, k and v, or relative terms"},
      {"q without k", with([](auto& t, auto&) { t.k = at::Tensor(); }),
       "attention: expected q and k together, got only q"},
      {"neither q nor relative queries", with([](auto& t, auto&) { t.q = t.k = at::Tensor(); }),
       "attention: expected q and k, or relative queries and keys, got neither"},
      {"no values", with([](auto& t, auto&) { t.v = at::Tensor(); }),
       "attention: expected v, or relative values, got neither"},
      {"a gate without position", with([](auto& t, auto&) { t.gate = at::zeros({3}); }),
       "attention: expected gate and position together, got only gate"},
      {"integer q", with([](auto& t, auto&) { t.q = t.q.to(at::kLong); }),
       "attention: q must hold floating-point numbers, got Long; convert it"},
      {"k of another type", with([](auto& t, auto&) { t.k = t.k.to(at::kDouble); }),
       "attention: k is Double but q is Float; convert one of them"},
      {"v on another device", with([](auto& t, auto&) { t.v = t.v.to(at::kMeta); }),
       "attention: v is on meta but q is on cpu; move one of them"},
      {"q without a batch", with([](auto& t, auto&) { t.q = t.q[0]; }),
       "attention: q must be [B, Nq, heads * D], got [5, 12]"},
      {"k of another width", with([](auto& t, auto&) {
         t.k = at::zeros({2, 5, 9});
       }),
       "attention: k has size 9 in dimension 2, expected 12 (the width of q); its shape is [2, 5, "
       "9]"},
      {"k of another batch", with([](auto& t, auto&) {
         t.q = at::zeros({3, 5, 12});
       }),
       "attention: q has size 3 in dimension 0, expected 2 (the batch); its shape is [3, 5, 12]"},
      {"v with another number of tokens", with([](auto& t, auto&) {
         t.v = at::zeros({2, 4, 12});
       }),
       "attention: v has size 4 in dimension 1, expected 5 (the tokens); its shape is [2, 4, 12]"},
      {"no tokens", with([](auto& t, auto& s) {
         t.q = t.k = t.v = at::zeros({2, 0, 12});
         s.pairs.text = "";
       }),
       "attention: expected one or more tokens, got none"},
      {"a bias for another number of heads", with([](auto& t, auto&) {
         t.bias = at::zeros({9, 2});
       }),
       "attention: bias has size 2 in dimension 1, expected 3 (one number per head); its shape is "
       "[9, 2]"},
      {"a bias without slots", with([](auto& t, auto&) { t.bias = at::zeros({3}); }),
       "attention: bias must be [slots, heads], got [3]"},
      {"relative terms without slots", with(relative, [](auto&, auto& s) { s.pairs.text = ""; }),
       "attention: relative terms need pairs with slots, such as '7x7 cls' or '160 causal', got "
       "''"},
      {"a bias without pairs", with([](auto&, auto& s) { s.pairs.text = "causal"; }),
       "attention: bias needs pairs with slots, such as '7x7 cls', got 'causal'"},
      {"relative queries without keys",
       with(relative, [](auto& t, auto&) { t.rel_k = t.table_k = at::Tensor(); }),
       "attention: relative queries are 12 wide, relative keys 0; they must be equal, or both "
       "absent"},
      {"relative keys of another width",
       with(relative,
            [](auto& t, auto&) {
              t.table_k = at::zeros({9, 6, 9});
            }),
       "attention: relative queries are 12 wide, relative keys 9; they must be equal, or both "
       "absent"},
      {"a table for another number of channels",
       with(relative,
            [](auto& t, auto&) {
              t.table_q = at::zeros({9, 5, 12});
            }),
       "attention: table_q has size 5 in dimension 1, expected 6 (the channels of the features it "
       "multiplies); its shape is [9, 5, 12]"},
      {"a table of vectors for features",
       with(relative,
            [](auto& t, auto&) {
              t.table_v = at::zeros({9, 12});
            }),
       "attention: table_v must be [slots, C, width], one matrix per slot, got [9, 12]"},
      {"a table of matrices without features",
       with(relative, [](auto& t, auto&) { t.rel_k = at::Tensor(); }),
       "attention: table_k must be [slots, width], one vector per slot, got [9, 6, 12]"},
      {"a table whose width the heads do not divide",
       with(relative,
            [](auto& t, auto&) {
              t.table_v = at::zeros({9, 6, 10});
            }),
       "attention: the width 10 of table_v does not split evenly among 3 heads; expected a "
       "multiple "
       "of 3"},
  };
}

std::vector<WrongCall> wrong_pairs() {
  return {
      {"pairs with an unknown text", with([](auto&, auto& s) { s.pairs.text = "five"; }),
       "pairs: expected a text such as '7x7 cls', '160 causal' or 'causal', got 'five'"},
      {"pairs with an unknown word", with([](auto&, auto& s) { s.pairs.text = "5 class"; }),
       "pairs: expected a text such as '7x7 cls', '160 causal' or 'causal', got '5 class'"},
      {"a radius that is not a number", with([](auto&, auto& s) { s.pairs.text = "5 window=x"; }),
       "pairs: expected a text such as '7x7 cls', '160 causal' or 'causal', got '5 window=x'"},
      {"a radius below 0", with([](auto&, auto& s) { s.pairs.text = "5 direction=-1"; }),
       "offsets: expected a radius of 0 or more, got -1"},
      {"a side of 0", with([](auto&, auto& s) { s.pairs.text = "5x0"; }),
       "offsets: expected a grid with sides of 1 or more, got 5x0"},
      {"a side that overflows", with([](auto&, auto& s) { s.pairs.text = "99999999999999999999"; }),
       "pairs: expected a text such as '7x7 cls', '160 causal' or 'causal', got "
       "'99999999999999999999'"},
      {"a grid that is too large", with([](auto&, auto& s) { s.pairs.text = "70000"; }),
       "offsets: expected at most 65535 tokens, got a grid of 70000"},
      {"pairs of fewer tokens", with([](auto& t, auto& s) {
         s.pairs.text = "4";
         t.bias = at::zeros({7, 3});
       }),
       "pairs: expected 1 to 4 tokens, got 5"},
      {"pairs of another grid", with([](auto& t, auto& s) {
         s.pairs.text = "2x3";
         t.bias = at::zeros({15, 3});
       }),
       "pairs: expected 6 tokens, got 5"},
      {"a grid that is larger than that of the pairs",
       with([](auto&, auto& s) { s.pairs.grid = {6}; }), "pairs: expected a grid within 5, got 6"},
      {"a grid with another number of tokens", with([](auto&, auto& s) { s.pairs.grid = {4}; }),
       "pairs: expected 4 tokens for the grid 4, got 5"},
      {"a grid with another number of sides", with([](auto&, auto& s) {
         s.pairs.grid = {5, 1};
       }),
       "pairs: expected a grid of 1 sides within 5, got 5x1"},
      {"too few slots", with([](auto& t, auto&) { t.bias = t.bias.narrow(0, 0, 8); }),
       "attention: bias has 8 rows, the pairs '5' have 9 slots; build both for the same offsets"},
      {"too many slots",
       with(relative,
            [](auto& t, auto&) {
              t.table_k = at::zeros({10, 6, 12});
            }),
       "attention: table_k has 10 rows, the pairs '5' have 9 slots; build both for the same "
       "offsets"},
      {"a part of the slots without a group",
       with(relative, [](auto&, auto& s) { s.pairs.text = "5 part=0/2"; }),
       "attention: expected the group that has the other parts of the slots, got none with '5 "
       "part=0/2'; register one with register_group and name it"},
      {"a group without a part of the slots",
       with(relative, [](auto&, auto& s) { s.group = "offset"; }),
       "attention: expected pairs with a part of the slots, such as '7x7 part=0/2', for the group "
       "'offset', got '5'"},
      {"a group that is not registered", with(part, [](auto&, auto&) {}),
       "group: expected the name of a registered group, got 'offset'; call register_group in this "
       "process first"},
      {"a table of all slots with a part",
       with(part,
            [](auto& t, auto&) {
              t.table_q = at::zeros({9, 6, 12});
            }),
       "attention: table_q has 9 rows, the pairs '5 part=0/2' have 5 slots; build both for the "
       "same "
       "offsets"},
      {"a bias with a part of the slots",
       with(part,
            [](auto& t, auto&) {
              t.bias = at::zeros({5, 3});
            }),
       "attention: expected matrices per slot with a part of the slots, got bias with vectors or "
       "numbers; pass all slots"},
      {"pairs of a relation that is not square",
       with([](auto&, auto& s) { s.pairs.text = "relation mirror=0 slots=0*24"; }),
       "relation: expected 16 entries for 4 tokens, got 24"},
      {"a relation with a slot too large",
       with([](auto&, auto& s) { s.pairs.text = "relation mirror=0 slots=0*24,1"; }),
       "relation: expected -1 for no pair or 0 to 0, got 1 for pair (4, 4)"},
      {"a relation with a key slot too large",
       with([](auto&, auto& s) { s.pairs.text = "relation mirror=1 slots=0*25"; }),
       "relation: expected mirror entries from 0 to 0, got 1"},
      {"a relation that repeats too often",
       with([](auto&, auto& s) { s.pairs.text = "relation mirror=0 slots=0*9223372036854775807"; }),
       "pairs: expected a text such as '7x7 cls', '160 causal' or 'causal', got 'relation mirror=0 "
       "slots=0*9223372036854775807'"},
  };
}

}  // namespace

std::vector<WrongCall> wrong_attention_calls() {
  std::vector<WrongCall> all{
      {"a dropout mask with probability 1", [] { dropout_mask(1.0, valid().terms.q, {}); },
       "dropout: expected a probability in [0, 1), got 1"},
      {"a dropout mask of NaN", [] { dropout_mask(std::nan(""), valid().terms.q, {}); },
       "dropout: expected a probability in [0, 1), got nan"},
      {"a dropout mask for a vector", [] { dropout_mask(0.5, at::zeros({2}), {}); },
       "dropout: expected x [B, N, C]"}};
  for (const auto& calls : {wrong_calls(), wrong_terms(), wrong_pairs()})
    all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

}  // namespace translution
