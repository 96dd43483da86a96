#include "translution/nn/score_parts.h"

#include <cmath>

#include "translution/ops/rotary.h"

namespace translution {
namespace {

torch::Tensor weight_of(const AttentionImpl& layer, const char* name) {
  const auto parameters = layer.named_parameters(/*recurse=*/false);
  const auto* found = parameters.find(name);
  return found ? found->detach().to(torch::kFloat) : torch::Tensor();
}

// One role of one side of the pairs: rows [n,C] times its shared matrix, plus its bias.
torch::Tensor shared_side(const AttentionImpl& layer, const torch::Tensor& rows,
                          const std::string& role) {
  const auto projected = rows.matmul(weight_of(layer, role.c_str()));
  const auto bias = weight_of(layer, (role + "_bias").c_str());
  return bias.defined() ? projected + bias : projected;
}

// The same in the small space: rows [1 or N,C] for N pairs with these slots [N], as [1 or N,r].
torch::Tensor relative_side(const AttentionImpl& layer, const torch::Tensor& rows,
                            const std::string& role, const std::vector<int64_t>& slots) {
  const auto small = rows.matmul(weight_of(layer, (role + "_down").c_str()));
  const auto table = weight_of(layer, (role + "_offsets").c_str());
  if (!table.defined()) return small;
  const auto matrices =
      table.index_select(0, torch::tensor(slots, torch::kLong).to(table.device()));  // [N,r,r]
  const auto pairs = small.expand({matrices.size(0), -1});
  return pairs.unsqueeze(1).bmm(matrices).squeeze(1);
}

// Row dots of q [1 or N, H*D] and k [N, H*D], as [H,N].
torch::Tensor dot_by_head(const torch::Tensor& q, const torch::Tensor& k, int64_t heads) {
  return (q * k).view({k.size(0), heads, -1}).sum(2).transpose(0, 1);
}

torch::Tensor rotated(const AttentionImpl& layer, const torch::Tensor& rows,
                      const torch::Tensor& angles) {
  return angles.defined() ? rotary(rows.unsqueeze(0), angles, layer.options.heads())[0] : rows;
}

}  // namespace

ScoreParts score_parts(const AttentionImpl& layer, const torch::Tensor& x, int64_t query) {
  const auto& options = layer.options;
  const Position& position = options.position();
  ScoreParts parts;
  if (position.method != Method::alpha_translution) return parts;
  TORCH_CHECK(x.dim() == 3 && x.size(0) == 1 && 0 <= query && query < x.size(1),
              "score_parts: expected x [1, N, dim] and a query from 0 to N - 1, got ", x.sizes(),
              " and query ", query);
  TORCH_CHECK(options.share().part.count == 1,
              "score_parts: expected a layer with all slots, got one with part ",
              options.share().part.index, " of ", options.share().part.count);
  torch::NoGradGuard no_grad;
  const auto all = x[0].to(torch::kFloat);   // [N,C]
  const auto one = all.narrow(0, query, 1);  // [1,C]
  const bool relative = weight_of(layer, "query_down").defined();
  const bool halved = position.shared_qkv && relative && position.mixing == Mixing::mean;
  const double scale = (halved ? 0.5 : 1) / std::sqrt(static_cast<double>(options.dim_head()));
  if (position.shared_qkv) {
    const auto angles = attention_layout(options).angles;
    const auto q = rotated(layer, shared_side(layer, one, "query"),
                           angles.defined() ? angles.narrow(0, query, 1) : angles);
    const auto k = rotated(layer, shared_side(layer, all, "key"), angles);
    parts.shared = scale * dot_by_head(q, k, options.heads());
  }
  if (!relative) return parts;
  std::vector<int64_t> slots, key_slots;
  for (int64_t j = 0; layer.offsets() && j < all.size(0); ++j) {
    slots.push_back(layer.offsets()->slot(query, j));
    key_slots.push_back(layer.offsets()->key_slot(query, j));
  }
  const auto q = relative_side(layer, one, "query", slots);
  const auto k = relative_side(layer, all, "key", key_slots);
  parts.relative = scale * dot_by_head(q, k, options.heads());
  return parts;
}

}  // namespace translution
