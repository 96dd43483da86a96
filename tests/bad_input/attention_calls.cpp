#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "tests/bad_input/wrong_calls.h"
#include "translution/ops/attention.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

constexpr int64_t kHugeRun = std::numeric_limits<int64_t>::max();

struct Call {
  AttentionTerms terms;
  AttentionSetting setting;
};

// A call that is right: batch 2, 5 tokens, 3 heads of 4, a bias per offset (9 slots).
Call good() {
  Call call;
  call.terms.q = call.terms.k = call.terms.v = at::zeros({2, 5, 12});
  call.terms.bias = at::zeros({9, 3});
  call.setting.runs = runs_to_tensor(OffsetTable({{5}}).runs());
  call.setting.heads = 3;
  return call;
}

// The same with relative queries, keys and values instead: 6 channels, matrices of 6x12.
Call relative() {
  Call call = good();
  call.terms = {};
  call.terms.rel_q = call.terms.rel_k = call.terms.rel_v = at::zeros({2, 5, 6});
  call.terms.table_q = call.terms.table_k = call.terms.table_v = at::zeros({9, 6, 12});
  return call;
}

// Calls with one thing changed.
template <typename Change>
std::function<void()> with(Call (*start)(), Change change) {
  return [start, change] {
    Call call = start();
    change(call.terms, call.setting);
    attention(call.terms, call.setting);
  };
}

template <typename Change>
std::function<void()> with(Change change) {
  return with(good, change);
}

// The good call with its first run replaced.
std::function<void()> with_run(Run run) {
  return with([run](auto&, auto& setting) { setting.runs = runs_to_tensor({run}); });
}

std::vector<WrongCall> wrong_settings() {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  return {
      {"no heads", with([](auto&, auto& s) { s.heads = 0; }),
       "attention: wanted one or more heads, got 0"},
      {"a NaN scale", with([nan](auto&, auto& s) { s.scale = nan; }),
       "attention: wanted a finite scale, got nan"},
      {"an infinite scale", with([infinity](auto&, auto& s) { s.scale = infinity; }),
       "attention: wanted a finite scale, got inf"},
      {"heads that do not divide the width", with([](auto&, auto& s) { s.heads = 5; }),
       "attention: the width 12 of q does not split evenly among 5 heads; wanted a multiple of 5"},
      {"rows of int32", with([](auto&, auto& s) { s.rows = at::zeros({5}, at::kInt); }),
       "attention: rows must be a vector of int64 token indices, got Int [5]"},
      {"rows in a matrix", with([](auto&, auto& s) {
         s.rows = at::zeros({5, 1}, at::kLong);
       }),
       "attention: rows must be a vector of int64 token indices, got Long [5, 1]"},
      {"rows out of range", with([](auto&, auto& s) { s.rows = at::arange(1, 6); }),
       "attention: rows reach from 1 to 5, the input has tokens 0 to 4"},
      {"negative rows", with([](auto&, auto& s) { s.rows = at::arange(-1, 4); }),
       "attention: rows reach from -1 to 3, the input has tokens 0 to 4"},
      {"no rows", with([](auto&, auto& s) { s.rows = at::zeros({0}, at::kLong); }),
       "attention: rows is empty; name one or more query rows"},
      {"fewer rows than queries", with([](auto&, auto& s) { s.rows = at::arange(3); }),
       "attention: rows has size 3 in dimension 0, wanted 5 (one token index per query row); its "
       "shape is [3]"},
      {"causal queries that nobody names", with([](auto& t, auto& s) {
         t.q = t.q.narrow(1, 0, 2);
         t.bias = at::Tensor();
         s.runs = at::Tensor();
         s.causal = true;
       }),
       "attention: causal with 2 query rows of 5 tokens needs `rows` to know which they are"},
      {"a mask of the wrong shape", with([](auto&, auto& s) {
         s.keep = at::ones({2, 3, 5, 4});
       }),
       "attention: keep has size 4 in dimension 3, wanted 5 (the attention map's shape); its shape "
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
       "attention: every term is missing; hand in q, k and v or relative ones"},
      {"q without k", with([](auto& t, auto&) { t.k = at::Tensor(); }),
       "attention: q and k come together, got only q"},
      {"neither q nor relative queries", with([](auto& t, auto&) { t.q = t.k = at::Tensor(); }),
       "attention: wanted q and k, or relative queries and keys, got neither"},
      {"no values", with([](auto& t, auto&) { t.v = at::Tensor(); }),
       "attention: wanted v, or relative values, got neither"},
      {"a gate without position", with([](auto& t, auto&) { t.gate = at::zeros({3}); }),
       "attention: gate and position come together, got only gate"},
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
       "attention: k has size 9 in dimension 2, wanted 12 (the width of q); its shape is [2, 5, "
       "9]"},
      {"k of another batch", with([](auto& t, auto&) {
         t.q = at::zeros({3, 5, 12});
       }),
       "attention: q has size 3 in dimension 0, wanted 2 (the batch); its shape is [3, 5, 12]"},
      {"v with other tokens", with([](auto& t, auto&) {
         t.v = at::zeros({2, 4, 12});
       }),
       "attention: v has size 4 in dimension 1, wanted 5 (the tokens); its shape is [2, 4, 12]"},
      {"no tokens", with([](auto& t, auto& s) {
         t.q = t.k = t.v = at::zeros({2, 0, 12});
         s.runs = at::zeros({0, 7}, at::kLong);
       }),
       "attention: wanted one or more tokens, got none"},
      {"a bias for other heads", with([](auto& t, auto&) {
         t.bias = at::zeros({9, 2});
       }),
       "attention: bias has size 2 in dimension 1, wanted 3 (one number per head); its shape is "
       "[9, 2]"},
      {"a bias without slots", with([](auto& t, auto&) { t.bias = at::zeros({3}); }),
       "attention: bias must be [slots, heads], got [3]"},
      {"relative terms without runs", with(relative, [](auto&, auto& s) { s.runs = at::Tensor(); }),
       "attention: relative terms need runs (OffsetTable::runs), got none"},
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
      {"a table for other channels",
       with(relative,
            [](auto& t, auto&) {
              t.table_q = at::zeros({9, 5, 12});
            }),
       "attention: table_q has size 5 in dimension 1, wanted 6 (the channels of the features it "
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
      {"a table that heads do not divide",
       with(relative,
            [](auto& t, auto&) {
              t.table_v = at::zeros({9, 6, 10});
            }),
       "attention: the width 10 of table_v does not split evenly among 3 heads; wanted a multiple "
       "of 3"},
  };
}

std::vector<WrongCall> wrong_runs() {
  return {
      {"runs of six numbers", with([](auto&, auto& s) { s.runs = s.runs.narrow(1, 0, 6); }),
       "attention: runs must be a CPU int64 tensor [R, 7] as OffsetTable gives it, got cpu Long "
       "[9, 6]"},
      {"runs of int32", with([](auto&, auto& s) { s.runs = s.runs.to(at::kInt); }),
       "attention: runs must be a CPU int64 tensor [R, 7] as OffsetTable gives it, got cpu Int [9, "
       "7]"},
      {"runs on another device", with([](auto&, auto& s) { s.runs = s.runs.to(at::kMeta); }),
       "attention: runs must be a CPU int64 tensor [R, 7] as OffsetTable gives it, got meta Long "
       "[9, 7]"},
      {"runs of a larger table",
       with([](auto&, auto& s) { s.runs = runs_to_tensor(OffsetTable({{6}}).runs()); }),
       "attention: the run that starts at pair (0, 5) with length 1 leaves the 5 query rows or the "
       "5 tokens; build the offset table for this input"},
      {"runs with more slots than the table",
       with([](auto& t, auto&) { t.bias = t.bias.narrow(0, 0, 8); }),
       "attention: a run asks for slots 0 and 8, the weight tables have 8 rows; make them for the "
       "same offset table"},
      {"a run of no pairs", with_run({0, 0, 0, 0, 0, 1, 1}),
       "attention: the run that starts at pair (0, 0) has length 0, wanted 1 or more"},
      {"a run with a negative length", with_run({0, 0, 0, 0, -4, 1, 1}),
       "attention: the run that starts at pair (0, 0) has length -4, wanted 1 or more"},
      {"a run that starts before the first token", with_run({0, 0, -1, 0, 1, 1, 1}),
       "attention: the run that starts at pair (-1, 0) with length 1 leaves the 5 query rows or "
       "the 5 tokens; build the offset table for this input"},
      {"a run that leaves the tokens", with_run({0, 0, 3, 0, 3, 1, 1}),
       "attention: the run that starts at pair (3, 0) with length 3 leaves the 5 query rows or the "
       "5 tokens; build the offset table for this input"},
      {"a run whose end overflows", with_run({0, 0, kHugeRun, 0, 2, 1, 1}),
       "attention: the run that starts at pair (9223372036854775807, 0) with length 2 leaves the 5 "
       "query rows or the 5 tokens; build the offset table for this input"},
      {"a run of overflowing length", with_run({0, 0, 0, 0, kHugeRun, 1, 1}),
       "attention: the run that starts at pair (0, 0) with length 9223372036854775807 leaves the 5 "
       "query rows or the 5 tokens; build the offset table for this input"},
      {"a run with a negative slot", with_run({-1, 0, 0, 0, 1, 1, 1}),
       "attention: a run asks for slots -1 and 0, the weight tables have 9 rows; make them for the "
       "same offset table"},
      {"a run with a key slot too large", with_run({0, 9, 0, 0, 1, 1, 1}),
       "attention: a run asks for slots 0 and 9, the weight tables have 9 rows; make them for the "
       "same offset table"},
      {"a run that stands still", with_run({0, 0, 0, 0, 2, 0, 0}),
       "attention: the run that starts at pair (0, 0) steps by (0, 0), wanted (1, 1), (0, 1) or "
       "(1, 0)"},
      {"a run that strides", with_run({0, 0, 0, 0, 2, 2, 1}),
       "attention: the run that starts at pair (0, 0) steps by (2, 1), wanted (1, 1), (0, 1) or "
       "(1, 0)"},
      {"more pairs than there are", with([](auto&, auto& s) {
         s.runs = at::cat({s.runs, s.runs});
       }),
       "attention: the runs hold 50 pairs, more than 5 x 5"},
  };
}

}  // namespace

std::vector<WrongCall> wrong_attention_calls() {
  std::vector<WrongCall> all{
      {"a dropout mask that drops all", [] { dropout_mask(1.0, {2}, at::kFloat); },
       "dropout: wanted a probability in [0, 1), got 1"},
      {"a dropout mask of NaN", [] { dropout_mask(std::nan(""), {2}, at::kFloat); },
       "dropout: wanted a probability in [0, 1), got nan"}};
  for (const auto& calls : {wrong_settings(), wrong_terms(), wrong_runs()})
    all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

}  // namespace translution
