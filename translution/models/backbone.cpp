#include "translution/models/backbone.h"

#include "translution/nn/norm.h"

namespace translution {

BackboneImpl::BackboneImpl(const ModelOptions& options, const at::Generator& generator,
                           const BlockBuilt& built) {
  const auto& a = options.architecture;
  register_module("blocks", blocks);
  const auto lattice = options.family == Family::cloud ? std::optional(options.lattice())
                                                       : std::optional<PointOptions>();
  for (int64_t layer = 0; layer < a.depth; ++layer) {
    Block block(options.attention(layer), a.mlp_dim, options.block_style(), generator, lattice);
    if (built) built(layer, *block);
    blocks->push_back(block);
  }
  norm = register_module("norm", make_norm(a.dim, options.norm_eps));
}

torch::Tensor BackboneImpl::forward(torch::Tensor x, const AttendOptions& call) {
  const auto call_between = [this](const torch::Tensor& y) {
    if (!between_blocks) return;
    between_blocks();
    if (y.requires_grad())
      y.register_hook([between = between_blocks](const torch::Tensor&) { between(); });
  };
  call_between(x);
  auto of_all_rows = call;
  of_all_rows.rows.reset();
  for (size_t layer = 0; layer < blocks->size(); ++layer) {
    const bool last = layer + 1 == blocks->size();
    x = blocks->at<BlockImpl>(layer).forward(x, last ? call : of_all_rows);
    call_between(x);
  }
  return normalise(norm, x);
}

std::vector<torch::Tensor> BackboneImpl::attention_maps(torch::Tensor x,
                                                        const AttendOptions& call) {
  std::vector<torch::Tensor> maps;
  for (size_t layer = 0; layer < blocks->size(); ++layer) {
    auto [y, map] = blocks->at<BlockImpl>(layer).forward_with_map(x, call);
    maps.push_back(map);
    x = y;
  }
  return maps;
}

}  // namespace translution
