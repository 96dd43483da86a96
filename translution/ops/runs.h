#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "translution/core/offsets.h"

namespace translution {

/// Runs travel through operator schemas as one CPU tensor [R, 7] of int64:
/// slot, key_slot, i, j, length, di, dj. Pairs that no run covers are left out of the attention.
at::Tensor runs_to_tensor(const std::vector<Run>& runs);
std::vector<Run> runs_from_tensor(const at::Tensor& runs);

/// What an op needs to know of the pairs before it trusts a run's numbers.
struct RunLimits {
  int64_t queries;
  int64_t tokens;
  int64_t slots;
};

/// Refuses a tensor that is no list of runs within the limits; `op` starts the message.
void check_runs(const char* op, const at::Tensor& runs, const RunLimits& limits);

/// Refuses query rows that are no int64 vector of token indices below `tokens`.
void check_rows(const char* op, const at::Tensor& rows, int64_t tokens);

/// The runs of the query rows `rows` [Nq] int64; `runs` itself where rows is undefined.
at::Tensor select_rows(const at::Tensor& runs, const at::Tensor& rows);

}  // namespace translution
