#include "translution/ops/point_encode.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <vector>

#include "translution/ops/check.h"
#include "translution/ops/point_encode_fused.h"
#include "translution/ops/register.h"
#include "translution/ops/rounding.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;
using EncodeForward = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                 const at::Tensor&, const std::string&);
using EncodeBackward = Tensors(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                               const at::Tensor&, const at::Tensor&, bool, bool,
                               const std::string&);

constexpr const char *kEncode = "point_encode", *kRows = "slot_rows";

Precision precision_of(const std::string& name) {
  return parse_name("precision", kPrecisions, name);
}

void check_encode(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                  const at::Tensor& first, const std::string& precision) {
  Checker check(kEncode, precision_of(precision));
  check.tensor("x", x, 2, "[tokens, channels]");
  check.tensor("table", table, 3, "[slots, channels, width]");
  check.size("table", table, 1, x.sym_size(1), "the channels of x");
  TORCH_CHECK(tokens.scalar_type() == at::kLong && tokens.dim() == 1, kEncode,
              ": tokens must be int64 [rows], got ", tokens.scalar_type(), " ", tokens.sym_sizes());
  TORCH_CHECK(first.scalar_type() == at::kLong && first.dim() == 1 &&
                  first.sym_size(0) == table.sym_size(0) + 1,
              kEncode, ": first must be int64 [", table.sym_size(0) + 1,
              "], one more than there are slots, got ", first.scalar_type(), " ",
              first.sym_sizes());
}

// Where the kernels would read beyond x, or leave rows out.
void check_rows(const at::Tensor& x, const at::Tensor& tokens, const at::Tensor& first) {
  const int64_t rows = tokens.numel(), slots = first.numel() - 1;
  const int64_t *const of = tokens.data_ptr<int64_t>(), *const at = first.data_ptr<int64_t>();
  TORCH_CHECK(at[0] == 0 && at[slots] == rows && std::is_sorted(at, at + slots + 1), kEncode,
              ": first must rise from 0 to ", rows, ", the number of rows");
  for (int64_t m = 0; m < slots; ++m)
    for (int64_t row = at[m]; row < at[m + 1]; ++row)
      TORCH_CHECK(of[row] >= 0 && of[row] < x.size(0) && (row == at[m] || of[row] > of[row - 1]),
                  kEncode, ": the tokens of a slot must ascend within 0 to ", x.size(0) - 1,
                  ", got ", of[row], " in row ", row);
}

bool is_fused(const at::Tensor& x, const at::Tensor& table) {
  const auto supported = [](const at::Tensor& t) {
    return t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble;
  };
  return runtime().fused() && supported(x) && supported(table);
}

at::Tensor operand(const at::Tensor& x, const std::string& precision) {
  return multiplies_bf16(precision_of(precision), x) ? rounded(x) : x;
}

at::Tensor operand_fused(const at::Tensor& x, const std::string& precision) {
  const auto dense = x.contiguous();
  return multiplies_bf16(precision_of(precision), x) ? to_bf16(dense) : dense;
}

// Calls work(slot, rows) for the slots that have rows.
template <typename Work>
void each_slot(const at::Tensor& first, const Work& work) {
  const auto at = first.cpu().contiguous();
  const int64_t* const of = at.data_ptr<int64_t>();
  for (int64_t m = 0; m + 1 < at.numel(); ++m)
    if (of[m] < of[m + 1]) work(m, at::indexing::Slice(of[m], of[m + 1]));
}

at::Tensor encode_portable(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                           const at::Tensor& first, const std::string& precision) {
  check_encode(x, table, tokens, first, precision);
  const auto left = operand(x, precision), right = operand(table, precision);
  Tensors parts = {at::empty({0, table.size(2)}, x.options())};
  each_slot(first, [&](int64_t m, const auto& rows) {
    parts.push_back(left.index_select(0, tokens.index({rows})).mm(right[m]));
  });
  return at::cat(parts);
}

at::Tensor encode_cpu(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                      const at::Tensor& first, const std::string& precision) {
  check_encode(x, table, tokens, first, precision);
  const auto of = tokens.contiguous(), at = first.contiguous();
  check_rows(x, of, at);
  if (!is_fused(x, table)) return encode_portable(x, table, of, at, precision);
  return encode_fused(operand_fused(x, precision), table.contiguous(), of, at);
}

at::Tensor encode_meta(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                       const at::Tensor& first, const std::string& precision) {
  check_encode(x, table, tokens, first, precision);
  return at::empty_symint({tokens.sym_size(0), table.sym_size(2)}, x.options());
}

void check_gradient(const at::Tensor& d, const at::Tensor& x, const at::Tensor& table,
                    const at::Tensor& tokens, const at::Tensor& first,
                    const std::string& precision) {
  check_encode(x, table, tokens, first, precision);
  Checker check(kEncode, precision_of(precision));
  check.tensor("d", d, 2, "[rows, width]");
  check.size("d", d, 0, tokens.sym_size(0), "the rows");
  check.size("d", d, 1, table.sym_size(2), "the width of the table");
}

Tensors encode_backward_portable(const at::Tensor& d, const at::Tensor& x, const at::Tensor& table,
                                 const at::Tensor& tokens, const at::Tensor& first, bool needs_x,
                                 bool needs_table, const std::string& precision) {
  check_gradient(d, x, table, tokens, first, precision);
  const auto d_rows = operand(d, precision), left = operand(x, precision),
             right = operand(table, precision);
  auto dx = at::zeros({needs_x ? x.size(0) : 0, x.size(1)}, x.options());
  auto dtable =
      needs_table ? at::zeros(table.sizes(), table.options()) : at::empty({0}, table.options());
  each_slot(first, [&](int64_t m, const auto& rows) {
    const auto of = tokens.index({rows}), d_slot = d_rows.index({rows});
    if (needs_x) dx.index_add_(0, of, d_slot.mm(right[m].t()));
    if (needs_table) dtable[m] = left.index_select(0, of).t().mm(d_slot);
  });
  return {dx, dtable};
}

Tensors encode_backward_plain(const at::Tensor& d, const at::Tensor& x, const at::Tensor& table,
                              const at::Tensor& tokens, const at::Tensor& first, bool needs_x,
                              bool needs_table, const std::string& precision) {
  const auto form = [&](const Tensors& given) {
    return Tensors{encode_portable(given[0], given[1], tokens, first, precision)};
  };
  auto found = plain_gradients(form, {x, table}, {d}, {needs_x, needs_table});
  if (!found[0].defined()) found[0] = needs_x ? at::zeros_like(x) : at::empty({0}, x.options());
  if (!found[1].defined())
    found[1] = needs_table ? at::zeros_like(table) : at::empty({0}, table.options());
  return found;
}

Tensors encode_backward_cpu(const at::Tensor& d, const at::Tensor& x, const at::Tensor& table,
                            const at::Tensor& tokens, const at::Tensor& first, bool needs_x,
                            bool needs_table, const std::string& precision) {
  check_gradient(d, x, table, tokens, first, precision);
  const auto of = tokens.contiguous(), at = first.contiguous();
  check_rows(x, of, at);
  if (!is_fused(x, table))
    return encode_backward_portable(d, x, table, of, at, needs_x, needs_table, precision);
  const auto d_rows = operand_fused(d, precision);
  const auto none = at::empty({0}, x.options());
  return {needs_x ? encode_input_gradient(d_rows, table.contiguous(), of, at, x.size(0)) : none,
          needs_table ? encode_table_gradient(d_rows, operand_fused(x, precision), of, at)
                      : none.clone()};
}

Tensors encode_backward_meta(const at::Tensor&, const at::Tensor& x, const at::Tensor& table,
                             const at::Tensor&, const at::Tensor&, bool needs_x, bool needs_table,
                             const std::string&) {
  return {needs_x ? empty_of(x) : at::empty({0}, x.options()),
          needs_table ? empty_of(table) : at::empty({0}, x.options())};
}

at::Tensor call_encode(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                       const at::Tensor& first, const std::string& precision) {
  static const Op<EncodeForward> op("translution::point_encode");
  return op(x, table, tokens, first, precision);
}

at::Tensor encode_autograd(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                           const at::Tensor& first, const std::string& precision) {
  const Differentiable call(kEncode, {x, table});
  const auto out = call.below([&] { return call_encode(x, table, tokens, first, precision); });
  call.finish({out}, {x, table, tokens, first}, [precision](const BackwardCall& b) -> Tensors {
    static const Op<EncodeBackward> op("translution::point_encode_backward");
    const auto& s = b.saved;
    auto found = op(b.d[0], s[0], s[1], s[2], s[3], b.needs[0], b.needs[1], precision);
    for (size_t i = 0; i < found.size(); ++i)
      if (!b.needs[i]) found[i] = at::Tensor();
    return found;
  });
  return out;
}

void check_slots(const at::Tensor& slots, const at::Tensor& token, int64_t tokens,
                 int64_t slots_in_all, int64_t mirrored, const at::Tensor& phi) {
  TORCH_CHECK(slots.scalar_type() == at::kLong && slots.dim() == 2 &&
                  token.scalar_type() == at::kLong && token.dim() == 1 &&
                  token.size(0) == slots.size(0),
              kRows, ": expected int64 slots [E, T] and tokens [E], got ", slots.sizes(), " and ",
              token.sizes());
  if (phi.defined())
    TORCH_CHECK(phi.sizes() == slots.sizes(), kRows, ": slots are ", slots.sizes(), " but phi is ",
                phi.sizes());
  TORCH_CHECK(mirrored >= 0 && mirrored <= slots_in_all, kRows, ": expected 0 to ", slots_in_all,
              " mirrored slots, got ", mirrored);
  for (const auto& [indices, count] : {std::pair(slots, slots_in_all), std::pair(token, tokens)}) {
    if (indices.numel() == 0) continue;
    const auto [low, high] = indices.aminmax();
    TORCH_CHECK(low.item<int64_t>() >= 0 && high.item<int64_t>() < count, kRows,
                ": slots and tokens must be 0 to ", slots_in_all - 1, " and ", tokens - 1);
  }
}

}  // namespace

SlotRows slot_rows(const at::Tensor& slots, const at::Tensor& token, int64_t tokens,
                   int64_t slots_in_all, int64_t mirrored, const at::Tensor& phi) {
  check_slots(slots, token, tokens, slots_in_all, mirrored, phi);
  const auto s = slots.cpu().contiguous(), r = token.cpu().contiguous();
  const auto open = phi.defined() ? phi.detach().cpu().ne(0).contiguous() : at::Tensor();
  auto places = at::full({tokens, slots_in_all}, -1, s.options()),
       first = at::zeros({slots_in_all + 1}, s.options());
  int64_t *const at = places.data_ptr<int64_t>(), *const starts = first.data_ptr<int64_t>();
  const int64_t *const slot = s.data_ptr<int64_t>(), *const of = r.data_ptr<int64_t>();
  const bool* const used = open.defined() ? open.data_ptr<bool>() : nullptr;
  const int64_t taps = s.size(1);
  for (int64_t e = 0; e < s.size(0); ++e)
    for (int64_t t = e * taps; t < (e + 1) * taps; ++t)
      if (used == nullptr || used[t]) at[of[e] * slots_in_all + slot[t]] = 0;
  std::vector<int64_t> row_tokens;
  for (int64_t m = 0; m < slots_in_all; ++m) {
    const int64_t column = m < mirrored ? mirrored - 1 - m : m;
    for (int64_t i = 0; i < tokens; ++i) {
      if (at[i * slots_in_all + column] < 0) continue;
      at[i * slots_in_all + column] = static_cast<int64_t>(row_tokens.size());
      row_tokens.push_back(i);
    }
    starts[m + 1] = static_cast<int64_t>(row_tokens.size());
  }
  const auto device = slots.device();
  return {places.to(device), at::tensor(row_tokens, s.options()).to(device), first.to(device)};
}

at::Tensor point_encode(const at::Tensor& x, const at::Tensor& table, const SlotRows& rows,
                        Precision precision) {
  return call_encode(x, table, rows.tokens, rows.first, name_of(kPrecisions, precision));
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<EncodeForward>(
      m,
      "point_encode(Tensor x, Tensor table, Tensor tokens, Tensor first, "
      "str precision='float32') -> Tensor",
      {encode_portable, encode_cpu, encode_meta, encode_autograd, encode_portable});
  register_op<EncodeBackward>(
      m,
      "point_encode_backward(Tensor d, Tensor x, Tensor table, Tensor tokens, Tensor first, "
      "bool needs_x, bool needs_table, str precision='float32') -> Tensor[]",
      {encode_backward_portable, encode_backward_cpu, encode_backward_meta, nullptr,
       encode_backward_plain});
}

}  // namespace translution
