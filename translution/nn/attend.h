#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "translution/nn/attention.h"
#include "translution/ops/functional.h"

namespace translution {

/// The offset table of a layer with these options; null where the method reads none.
std::shared_ptr<const OffsetTable> offsets_of(const AttentionOptions& options);

/// The tables that go with these options and their offset table.
AttentionTables attention_tables(const AttentionOptions& options, const OffsetTable* offsets);

/// Refuses x unless it is [B,N,dim] with as many tokens as the tables were made for.
void check_input(const at::Tensor& x, int64_t dim, const AttentionTables& tables);

/// The runs among the first `tokens` tokens; undefined where there are none at all.
at::Tensor runs_of(const AttentionTables& tables, int64_t tokens);

/// A parameter of a layer by its name; undefined where the layer has none of that name.
using WeightOf = std::function<at::Tensor(const char* name)>;

/// A layer before its output projection, as a function of its weights: picks the method's function
/// of ops/functional.h. `call` has runs and angles for the tokens of x.
Attended attend(const at::Tensor& x, const Position& position, const WeightOf& weight,
                const at::Tensor& position_features, const CallOptions& call);

}  // namespace translution
