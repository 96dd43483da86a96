#include "translution/nn/attend.h"

#include "translution/ops/convolution.h"
#include "translution/ops/project.h"
#include "translution/ops/rotary.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

constexpr double kRotaryBase = 10000;

// What positional attention knows of an offset: its squared length and coordinates; a class
// token's three directions are told apart by one feature each.
at::Tensor make_position_features(const OffsetTable& table) {
  const auto& options = table.options();
  const int64_t axes = static_cast<int64_t>(options.grid.size());
  auto features = torch::zeros({table.num_slots(), axes + 1 + (options.cls ? 3 : 0)});
  auto at = features.accessor<float, 2>();
  int64_t cls_feature = axes + 1;
  for (int64_t slot = 0; slot < table.num_slots(); ++slot) {
    const auto offset = table.offset(slot);
    if (!offset) {
      at[slot][cls_feature++] = 1;
      continue;
    }
    for (int64_t axis = 0; axis < axes; ++axis) {
      const auto d = static_cast<float>((*offset)[axis]);
      at[slot][1 + axis] = d;
      at[slot][0] += d * d;
    }
  }
  return features;
}

Attended convolve(const at::Tensor& x, const at::Tensor& kernel, const CallOptions& call) {
  Attended result;
  result.out = convolution(x, kernel, call.runs, call.rows, call.causal);
  if (!call.map) return result;
  auto window = torch::zeros({x.size(1), x.size(1)}, x.options());  // [N,N], one inside the window
  for (const Run& run : runs_from_tensor(call.runs))
    for (int64_t t = 0; t < run.length; ++t)
      window.index_put_({run.i + t * run.di, run.j + t * run.dj}, 1);
  if (call.causal) window.tril_();
  if (call.rows.defined()) window = window.index_select(0, call.rows.to(x.device()));
  result.map = window.expand({x.size(0), call.heads, window.size(0), window.size(1)});
  return result;
}

}  // namespace

std::shared_ptr<const OffsetTable> offsets_of(const AttentionOptions& o) {
  if (!o.position().uses_offsets()) return nullptr;
  if (o.relation()) return o.relation();
  return std::make_shared<const OffsetTable>(o.position().offsets(o.grid(), o.cls(), o.causal()));
}

AttentionTables attention_tables(const AttentionOptions& o, const OffsetTable* offsets) {
  AttentionTables tables;
  if (!takes_any_length(o))
    tables.tokens =
        o.relation() ? o.relation()->num_tokens() : count_tokens({o.grid(), o.cls(), o.causal()});
  tables.shorter = !o.relation() && o.grid().size() == 1;
  if (offsets) tables.runs = runs_to_tensor(offsets->runs());
  if (o.position().method == Method::gated_position)
    tables.position_features = make_position_features(*offsets);
  if (o.position().rotates())
    tables.angles =
        rotary_angles(o.grid(), o.cls(), o.dim_head(), kRotaryBase, o.position().angles);
  return tables;
}

void check_input(const at::Tensor& x, int64_t dim, const AttentionTables& tables) {
  TORCH_CHECK(x.defined(), "attention: x [B, N, ", dim, "] is missing");
  TORCH_CHECK(x.dim() == 3 && x.size(2) == dim, "attention: x must be [B, N, ", dim, "], got ",
              x.sizes());
  const int64_t tokens = x.size(1);
  if (tables.tokens == 0) return;
  TORCH_CHECK(tokens == tables.tokens || (tables.shorter && tokens > 0 && tokens < tables.tokens),
              "attention: x has ", tokens, " tokens, this layer was built for ",
              tables.shorter ? "1 to " : "", tables.tokens);
}

at::Tensor runs_of(const AttentionTables& tables, int64_t tokens) {
  if (!tables.runs.defined() || tokens == tables.tokens) return tables.runs;
  return runs_to_tensor(clip_runs(runs_from_tensor(tables.runs), tokens));
}

Attended attend(const at::Tensor& x, const Position& position, const WeightOf& weight,
                const at::Tensor& position_features, const CallOptions& call) {
  const RoleWeights shared{weight("query"), weight("key"), weight("value")};
  switch (position.method) {
    case Method::translution:
      return translution(x, shared, call);
    case Method::alpha_translution:
      return alpha_translution(
          x,
          {shared,
           {weight("query_down"), weight("key_down"), weight("value_down")},
           {weight("query_offsets"), weight("key_offsets"), weight("value_offsets")},
           weight("value_up")},
          call, position.mixing);
    case Method::convolution:
      return convolve(x, weight("kernel"), call);
    default:
      break;
  }
  PositionTerms terms{
      weight("key_vectors"), weight("value_vectors"),
      weight("bias"),        {},
      weight("gate"),        {weight("query_bias"), weight("key_bias"), weight("value_bias")}};
  if (terms.gate.defined()) {
    const auto scores = weight("position_weight");
    terms.position =
        project(position_features.to(scores.options().requires_grad(false)), {scores})[0];
  }
  return self_attention(x, shared, terms, call);
}

}  // namespace translution
