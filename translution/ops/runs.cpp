#include "translution/ops/runs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

namespace translution {
namespace {

constexpr int64_t kFields = 7;
static_assert(sizeof(Run) == kFields * sizeof(int64_t), "a Run is seven int64 in a row");

}  // namespace

at::Tensor runs_to_tensor(const std::vector<Run>& runs) {
  auto tensor = at::empty({static_cast<int64_t>(runs.size()), kFields}, at::kLong);
  if (!runs.empty()) std::memcpy(tensor.data_ptr<int64_t>(), runs.data(), tensor.nbytes());
  return tensor;
}

std::vector<Run> runs_from_tensor(const at::Tensor& tensor) {
  const auto contiguous = tensor.contiguous();
  std::vector<Run> runs(contiguous.size(0));
  if (!runs.empty()) std::memcpy(runs.data(), contiguous.data_ptr<int64_t>(), contiguous.nbytes());
  return runs;
}

void check_runs(const char* op, const at::Tensor& runs, const RunLimits& limits) {
  TORCH_CHECK(runs.device().is_cpu() && runs.scalar_type() == at::kLong && runs.dim() == 2 &&
                  runs.size(1) == kFields,
              op, ": runs must be a CPU int64 tensor [R, 7] as OffsetTable gives it, got ",
              runs.device(), " ", runs.scalar_type(), " ", runs.sizes());
  int64_t pairs = 0;
  for (const Run& run : runs_from_tensor(runs)) {
    const bool steps = (run.di == 1 && run.dj == 1) || (run.di == 0 && run.dj == 1) ||
                       (run.di == 1 && run.dj == 0);
    TORCH_CHECK(steps, op, ": the run that starts at pair (", run.i, ", ", run.j, ") steps by (",
                run.di, ", ", run.dj, "), wanted (1, 1), (0, 1) or (1, 0)");
    TORCH_CHECK(run.length > 0, op, ": the run that starts at pair (", run.i, ", ", run.j,
                ") has length ", run.length, ", wanted 1 or more");
    // First the starts and the length, so that no sum below can overflow.
    TORCH_CHECK(run.length <= std::max(limits.queries, limits.tokens) && run.i >= 0 &&
                    run.i < limits.queries && run.j >= 0 && run.j < limits.tokens &&
                    run.i + run.di * (run.length - 1) < limits.queries &&
                    run.j + run.dj * (run.length - 1) < limits.tokens,
                op, ": the run that starts at pair (", run.i, ", ", run.j, ") with length ",
                run.length, " leaves the ", limits.queries, " query rows or the ", limits.tokens,
                " tokens; build the offset table for this input");
    TORCH_CHECK(run.slot >= 0 && run.slot < limits.slots && run.key_slot >= 0 &&
                    run.key_slot < limits.slots,
                op, ": a run asks for slots ", run.slot, " and ", run.key_slot,
                ", the weight tables have ", limits.slots,
                " rows; make them for the same offset table");
    pairs += run.length;
  }
  TORCH_CHECK(pairs <= limits.queries * limits.tokens, op, ": the runs hold ", pairs,
              " pairs, more than ", limits.queries, " x ", limits.tokens);
}

void check_rows(const char* op, const at::Tensor& rows, int64_t tokens) {
  TORCH_CHECK(rows.dim() == 1 && rows.scalar_type() == at::kLong, op,
              ": rows must be a vector of int64 token indices, got ", rows.scalar_type(), " ",
              rows.sizes());
  TORCH_CHECK(rows.size(0) > 0, op, ": rows is empty; name one or more query rows");
  if (rows.is_meta()) return;
  const int64_t low = rows.min().item<int64_t>(), high = rows.max().item<int64_t>();
  TORCH_CHECK(low >= 0 && high < tokens, op, ": rows reach from ", low, " to ", high,
              ", the input has tokens 0 to ", tokens - 1);
}

at::Tensor select_rows(const at::Tensor& runs, const at::Tensor& rows) {
  if (!runs.defined() || !rows.defined()) return runs;
  const auto on_cpu = rows.to(at::kCPU, at::kLong).contiguous();
  const auto* first = on_cpu.data_ptr<int64_t>();
  return runs_to_tensor(
      select_rows(runs_from_tensor(runs), std::vector<int64_t>(first, first + on_cpu.numel())));
}

}  // namespace translution
