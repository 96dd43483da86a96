#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "translution/core/message.h"
#include "translution/core/shards.h"
#include "translution/kernels/gemm.h"
#include "translution/kernels/slot_plan.h"
#include "translution/ops/attention_impl.h"
#include "translution/ops/check.h"
#include "translution/ops/part_sums.h"
#include "translution/ops/rounding.h"

namespace translution {

using namespace detail;

namespace {

constexpr const char* kOp = "attention";
constexpr int64_t kMinLastBatch = 16;  // samples that fill a vector

// Checks a relative side: features and matrices, features, or vectors. Returns its width, 0 if
// absent.
c10::SymInt check_side(Checker& check, const char* x_name, const at::Tensor& x,
                       const char* table_name, const at::Tensor& table, int64_t heads) {
  if (!x.defined() && !table.defined()) return 0;
  if (x.defined()) check.tensor(x_name, x, 3, "[B, N, C]");
  if (!table.defined()) {
    check.splits(x_name, x, heads);
    return x.sym_size(2);
  }
  if (x.defined()) {
    check.tensor(table_name, table, 3, "[slots, C, width], one matrix per slot");
    check.size(table_name, table, 1, x.sym_size(2), "the channels of the features it multiplies");
  } else {
    check.tensor(table_name, table, 2, "[slots, width], one vector per slot");
  }
  check.splits(table_name, table, heads);
  return table.sym_size(-1);
}

void check_scores(Checker& check, const AttentionTerms& t, int64_t heads) {
  TORCH_CHECK(t.q.defined() == t.k.defined(), kOp, ": expected q and k together, got only ",
              t.q.defined() ? "q" : "k");
  if (t.q.defined()) {
    check.tensor("q", t.q, 3, "[B, Nq, heads * D]");
    check.tensor("k", t.k, 3, "[B, N, heads * D]");
    check.size("k", t.k, 2, t.q.sym_size(2), "the width of q");
    check.splits("q", t.q, heads);
  }
  const auto q_width = check_side(check, "rel_q", t.rel_q, "table_q", t.table_q, heads);
  const auto k_width = check_side(check, "rel_k", t.rel_k, "table_k", t.table_k, heads);
  TORCH_CHECK(q_width == k_width, kOp, ": relative queries are ", q_width, " wide, relative keys ",
              k_width, "; they must be equal, or both absent");
  TORCH_CHECK(t.q.defined() || q_width > 0, kOp,
              ": expected q and k, or relative queries and keys, got neither");
}

// Tables must have a row for every slot of the pairs, or of their part. Only matrices are split.
void check_slots(Checker& check, const AttentionTerms& t, const AttentionCall& call) {
  if (t.bias.defined()) {
    check.tensor("bias", t.bias, 2, "[slots, heads]");
    check.size("bias", t.bias, 1, call.heads, "one number per head");
  }
  TORCH_CHECK(t.gate.defined() == t.position.defined(), kOp,
              ": expected gate and position together, got only ",
              t.gate.defined() ? "gate" : "position");
  if (t.gate.defined()) {
    check.tensor("gate", t.gate, 1, "[heads]");
    check.size("gate", t.gate, 0, call.heads, "one number per head");
    check.tensor("position", t.position, 2, "[slots, heads]");
    check.size("position", t.position, 1, call.heads, "one number per head");
  }
  const auto offsets = find_offsets(call.pairs.text);
  const int64_t slots = count_rows(call.pairs.text);
  const bool relative = t.rel_q.defined() || t.rel_k.defined() || t.rel_v.defined();
  TORCH_CHECK(!relative || offsets, kOp,
              ": relative terms need pairs with slots, such as '7x7 cls' or '160 causal', got ",
              in_quotes(call.pairs.text));
  for (const auto& [name, table] :
       {std::pair{"table_q", t.table_q}, std::pair{"table_k", t.table_k},
        std::pair{"table_v", t.table_v}, std::pair{"bias", t.bias},
        std::pair{"position", t.position}}) {
    if (!table.defined()) continue;
    TORCH_CHECK(offsets, kOp, ": ", name, " needs pairs with slots, such as '7x7 cls', got ",
                in_quotes(call.pairs.text));
    TORCH_CHECK(table.sym_size(0) == slots, kOp, ": ", name, " has ", table.sym_size(0),
                " rows, the pairs ", in_quotes(call.pairs.text), " have ", slots,
                " slots; build both for the same offsets");
    TORCH_CHECK(table.dim() == 3 || call.group.empty(), kOp, ": expected matrices per slot with a ",
                "part of the slots, got ", name, " with vectors or numbers; pass all slots");
  }
}

void check_sizes(Checker& check, const AttentionTerms& t, const AttentionCall& call,
                 const AttentionSizes& size) {
  const auto batch_and_tokens = [&](const char* name, const at::Tensor& x,
                                    const c10::SymInt& tokens, const char* reason) {
    if (!x.defined()) return;
    check.size(name, x, 0, size.batch, "the batch");
    check.size(name, x, 1, tokens, reason);
  };
  TORCH_CHECK(size.tokens > 0, kOp, ": expected one or more tokens, got none");
  batch_and_tokens("q", t.q, size.queries, "the query rows");
  batch_and_tokens("rel_q", t.rel_q, size.queries, "the query rows");
  for (const auto& [name, x] : {std::pair{"k", t.k}, std::pair{"v", t.v},
                                std::pair{"rel_k", t.rel_k}, std::pair{"rel_v", t.rel_v}})
    batch_and_tokens(name, x, size.tokens, "the tokens");
  if (call.keep.defined()) {
    check.tensor("keep", call.keep, 4, "[B, heads, Nq, N]");
    const c10::SymInt expected[] = {size.batch, size.heads, size.queries, size.tokens};
    for (int64_t dim = 0; dim < 4; ++dim)
      check.size("keep", call.keep, dim, expected[dim], "the attention map's shape");
  }
  if (call.mask.defined()) check.padding(call.mask, size.batch, size.tokens);
}

bool is_matrices(const AttentionTerms& terms, at::Tensor AttentionTerms::*field) {
  return (field == &AttentionTerms::table_q || field == &AttentionTerms::table_k ||
          field == &AttentionTerms::table_v) &&
         !is_vectors(terms.*field);
}

// Rows of encoded queries and keys of one sample. For a symbolic number of tokens, two per pair.
c10::SymInt rows_to_save(const AttentionCall& call, const c10::SymInt& tokens) {
  if (!tokens.is_symbolic()) return kernels::encoded_rows(*pairs_of(call, tokens.expect_int()));
  const auto& options = find_offsets(call.pairs.text)->options();
  const bool plain = options.grid.size() == 1 && !options.cls && call.pairs.rows.empty() &&
                     call.group.empty() && options.encoding == Encoding::relative &&
                     options.sharing == Sharing::none;
  if (!plain) return kernels::encoded_rows(*pairs_of(call, tokens.guard_int(__FILE__, __LINE__)));
  return options.causal ? tokens * (tokens + 1) : tokens * tokens * 2;
}

}  // namespace

AttentionSizes sizes_of(const AttentionTerms& terms, const AttentionCall& call) {
  const auto first = [](std::initializer_list<at::Tensor> tensors, int64_t dim) {
    for (const auto& tensor : tensors)
      if (tensor.defined()) return tensor.sym_size(dim);
    return c10::SymInt(0);
  };
  AttentionSizes size{};
  size.heads = call.heads;
  size.batch = first({terms.k, terms.v, terms.rel_k, terms.rel_v, terms.rel_q}, 0);
  size.tokens = first({terms.k, terms.v, terms.rel_k, terms.rel_v}, 1);
  if (size.tokens == 0 && call.pairs.rows.empty()) size.tokens = first({terms.rel_q}, 1);
  const auto& rows = call.pairs.rows;
  size.queries = rows.empty() ? size.tokens : c10::SymInt(static_cast<int64_t>(rows.size()));
  size.out_width = first({terms.v}, 2);
  size.relative_width = first({terms.table_v, terms.rel_v}, -1);
  return size;
}

AttentionSizes check_attention(const AttentionTerms& t, const AttentionCall& call) {
  TORCH_CHECK(call.heads > 0, kOp, ": expected one or more heads, got ", call.heads);
  TORCH_CHECK(std::isfinite(call.scale), kOp, ": expected a finite scale, got ", call.scale);
  Checker check(kOp, call.precision);
  check_scores(check, t, call.heads);
  if (t.v.defined()) {
    check.tensor("v", t.v, 3, "[B, N, heads * D]");
    check.splits("v", t.v, call.heads);
  }
  const auto relative = check_side(check, "rel_v", t.rel_v, "table_v", t.table_v, call.heads);
  TORCH_CHECK(t.v.defined() || relative > 0, kOp, ": expected v, or relative values, got neither");
  const auto size = sizes_of(t, call);
  check_group(kOp, call.pairs.text, call.group);
  check_sizes(check, t, call, size);
  check_slots(check, t, call);
  return size;
}

bool multiplies_bf16(const AttentionTerms& terms, const AttentionCall& call) {
  const auto& features = terms.q.defined() ? terms.q : terms.rel_q;
  return multiplies_bf16(call.precision, features.defined() ? features : terms.table_q);
}

at::TensorOptions output_options(const AttentionTerms& t) {
  return (t.v.defined() ? t.v : t.rel_v.defined() ? t.rel_v : t.table_v).options();
}

AttentionTerms in_float32(const AttentionTerms& terms) {
  auto floats = terms;
  for (const auto field : kTermFields) {
    const auto& term = terms.*field;
    if (term.defined() && !is_matrices(terms, field)) floats.*field = term.to(at::kFloat);
  }
  return floats;
}

AttentionCall in_float32(AttentionCall call) {
  if (call.keep.defined()) call.keep = call.keep.to(at::kFloat);
  call.precision = Precision::bf16;
  return call;
}

OutputGradients in_float32(const OutputGradients& d) {
  const auto floats = [](const at::Tensor& x) { return x.defined() ? x.to(at::kFloat) : x; };
  return {floats(d.out), floats(d.relative_out), d.attention, d.kept};
}

std::shared_ptr<const Pairs> pairs_of(const AttentionCall& call, int64_t tokens) {
  auto name = call.pairs;
  name.tokens = tokens;
  return find_pairs(name);
}

int64_t relative_width(const AttentionTerms& terms) {
  int64_t width = 1;
  for (const auto& tensor :
       {terms.rel_q, terms.rel_k, terms.rel_v, terms.table_q, terms.table_k, terms.table_v})
    if (tensor.defined() && tensor.dim() > 0)
      width = std::max(width, tensor.sym_size(-1).guard_int(__FILE__, __LINE__));
  return width;
}

bool prefers_batch_last(const AttentionTerms& terms) {
  const auto& features = terms.rel_q.defined() ? terms.rel_q : terms.rel_v;
  if (!is_pairwise(terms) || features.dim() == 0) return false;
  const auto batch = features.sym_size(0);
  return relative_width(terms) < kernels::small_gemm_limit() &&
         (batch.is_symbolic() || batch >= kMinLastBatch);
}

bool is_batch_last(const AttentionTerms& terms, const AttentionCall& call) {
  return call.batch_last && is_pairwise(terms) &&
         relative_width(terms) < kernels::small_gemm_limit();
}

c10::SymInt kept_numbers(const AttentionTerms& terms, const AttentionCall& call,
                         const AttentionSizes& size) {
  if (call.workspace <= 0 || !terms.rel_q.defined() || !is_pairwise(terms)) return 0;
  // With few channels, encoding again is faster than reading the encoding from memory.
  const auto channels = [](const at::Tensor& x) {
    return x.defined() ? x.sym_size(2).guard_int(__FILE__, __LINE__) : 0;
  };
  if (std::max(channels(terms.rel_q), channels(terms.rel_k)) < kWideChannels) return 0;
  const auto width = (terms.table_q.defined() ? terms.table_q : terms.rel_q).sym_size(-1);
  const auto numbers = rows_to_save(call, size.tokens) * size.batch * width;
  const int64_t bytes = static_cast<int64_t>(
      multiplies_bf16(terms, call) ? sizeof(at::BFloat16) : terms.rel_q.element_size());
  return numbers <= call.workspace / bytes ? numbers : c10::SymInt(0);
}

at::Tensor empty_map(const AttentionTerms& terms, const AttentionCall& call,
                     const AttentionSizes& size, const at::TensorOptions& options) {
  const auto& [B, H, Nq, N] = std::tie(size.batch, size.heads, size.queries, size.tokens);
  if (!is_pairwise(terms)) return at::empty_symint({B, H, Nq, N}, options);
  return is_batch_last(terms, call)
             ? at::empty_symint({Nq, N, H, B}, options).permute({3, 2, 0, 1})
             : at::empty_symint({Nq, N, B, H}, options).permute({2, 3, 0, 1});
}

}  // namespace translution
