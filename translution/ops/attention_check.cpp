#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "translution/ops/attention_impl.h"
#include "translution/ops/check.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

constexpr const char* kOp = "attention";

// A relative side: features and matrices, features, or vectors. Returns its width, 0 if absent.
int64_t check_side(Checker& check, const char* x_name, const at::Tensor& x, const char* table_name,
                   const at::Tensor& table, int64_t heads) {
  if (!x.defined() && !table.defined()) return 0;
  if (x.defined()) check.tensor(x_name, x, 3, "[B, N, C]");
  if (!table.defined()) {
    check.splits(x_name, x, heads);
    return x.size(2);
  }
  if (x.defined()) {
    check.tensor(table_name, table, 3, "[slots, C, width], one matrix per slot");
    check.size(table_name, table, 1, x.size(2), "the channels of the features it multiplies");
  } else {
    check.tensor(table_name, table, 2, "[slots, width], one vector per slot");
  }
  check.splits(table_name, table, heads);
  return table.size(-1);
}

void check_scores(Checker& check, const AttentionTerms& t, int64_t heads) {
  TORCH_CHECK(t.q.defined() == t.k.defined(), kOp, ": q and k come together, got only ",
              t.q.defined() ? "q" : "k");
  if (t.q.defined()) {
    check.tensor("q", t.q, 3, "[B, Nq, heads * D]");
    check.tensor("k", t.k, 3, "[B, N, heads * D]");
    check.size("k", t.k, 2, t.q.size(2), "the width of q");
    check.splits("q", t.q, heads);
  }
  const int64_t q_width = check_side(check, "rel_q", t.rel_q, "table_q", t.table_q, heads);
  const int64_t k_width = check_side(check, "rel_k", t.rel_k, "table_k", t.table_k, heads);
  TORCH_CHECK(q_width == k_width, kOp, ": relative queries are ", q_width, " wide, relative keys ",
              k_width, "; they must be equal, or both absent");
  TORCH_CHECK(t.q.defined() || q_width > 0, kOp,
              ": wanted q and k, or relative queries and keys, got neither");
}

void check_slots(Checker& check, const AttentionTerms& t, const AttentionSetting& s,
                 const AttentionSizes& size) {
  if (t.bias.defined()) {
    check.tensor("bias", t.bias, 2, "[slots, heads]");
    check.size("bias", t.bias, 1, s.heads, "one number per head");
  }
  TORCH_CHECK(t.gate.defined() == t.position.defined(), kOp,
              ": gate and position come together, got only ",
              t.gate.defined() ? "gate" : "position");
  if (t.gate.defined()) {
    check.tensor("gate", t.gate, 1, "[heads]");
    check.size("gate", t.gate, 0, s.heads, "one number per head");
    check.tensor("position", t.position, 2, "[slots, heads]");
    check.size("position", t.position, 1, s.heads, "one number per head");
  }
  int64_t slots = std::numeric_limits<int64_t>::max();
  for (const auto& table : {t.table_q, t.table_k, t.table_v, t.bias, t.position})
    if (table.defined()) slots = std::min(slots, table.size(0));
  const bool needs_runs = t.rel_q.defined() || t.rel_k.defined() || t.rel_v.defined() ||
                          slots != std::numeric_limits<int64_t>::max();
  TORCH_CHECK(!needs_runs || s.runs.defined(), kOp,
              ": relative terms need runs (OffsetTable::runs), got none");
  if (s.runs.defined()) check_runs(kOp, s.runs, {size.queries, size.tokens, slots});
}

void check_sizes(Checker& check, const AttentionTerms& t, const AttentionSetting& s,
                 const AttentionSizes& size) {
  const auto batch_and_tokens = [&](const char* name, const at::Tensor& x, int64_t tokens,
                                    const char* reason) {
    if (!x.defined()) return;
    check.size(name, x, 0, size.batch, "the batch");
    check.size(name, x, 1, tokens, reason);
  };
  batch_and_tokens("q", t.q, size.queries, "the query rows");
  batch_and_tokens("rel_q", t.rel_q, size.queries, "the query rows");
  for (const auto& [name, x] : {std::pair{"k", t.k}, std::pair{"v", t.v},
                                std::pair{"rel_k", t.rel_k}, std::pair{"rel_v", t.rel_v}})
    batch_and_tokens(name, x, size.tokens, "the tokens");
  TORCH_CHECK(size.tokens > 0, kOp, ": wanted one or more tokens, got none");
  TORCH_CHECK(s.rows.defined() || !s.causal || size.queries == size.tokens, kOp, ": causal with ",
              size.queries, " query rows of ", size.tokens,
              " tokens needs `rows` to know which they are");
  if (s.rows.defined()) {
    check_rows(kOp, s.rows, size.tokens);
    check.size("rows", s.rows, 0, size.queries, "one token index per query row");
  }
  if (s.keep.defined()) {
    check.tensor("keep", s.keep, 4, "[B, heads, Nq, N]");
    const int64_t wanted[] = {size.batch, size.heads, size.queries, size.tokens};
    for (int64_t dim = 0; dim < 4; ++dim)
      check.size("keep", s.keep, dim, wanted[dim], "the attention map's shape");
  }
}

}  // namespace

AttentionSizes attention_sizes(const AttentionTerms& terms, const AttentionSetting& setting) {
  const auto first = [](std::initializer_list<at::Tensor> tensors, int64_t dim, int64_t otherwise) {
    for (const auto& tensor : tensors)
      if (tensor.defined()) return tensor.size(dim);
    return otherwise;
  };
  AttentionSizes size{};
  size.heads = setting.heads;
  size.batch = first({terms.k, terms.v, terms.rel_k, terms.rel_v, terms.rel_q}, 0, 0);
  size.tokens = first({terms.k, terms.v, terms.rel_k, terms.rel_v}, 1, 0);
  const bool rows = setting.rows.defined() && setting.rows.dim() == 1;
  size.queries = first({terms.q, terms.rel_q}, 1, rows ? setting.rows.size(0) : size.tokens);
  size.out_width = first({terms.v}, 2, 0);
  size.relative_width = first({terms.table_v, terms.rel_v}, -1, 0);
  return size;
}

AttentionSizes check_attention(const AttentionTerms& t, const AttentionSetting& s) {
  TORCH_CHECK(s.heads > 0, kOp, ": wanted one or more heads, got ", s.heads);
  TORCH_CHECK(std::isfinite(s.scale), kOp, ": wanted a finite scale, got ", s.scale);
  Checker check(kOp);
  check_scores(check, t, s.heads);
  if (t.v.defined()) {
    check.tensor("v", t.v, 3, "[B, N, heads * D]");
    check.splits("v", t.v, s.heads);
  }
  const int64_t relative = check_side(check, "rel_v", t.rel_v, "table_v", t.table_v, s.heads);
  TORCH_CHECK(t.v.defined() || relative > 0, kOp, ": wanted v, or relative values, got neither");
  const auto size = attention_sizes(t, s);
  check_sizes(check, t, s, size);
  check_slots(check, t, s, size);
  return size;
}

}  // namespace translution
