#include "translution/train/rank_grid.h"

namespace translution {
namespace {

// `count` ranks from `first` on, `step` apart.
std::vector<int> ranks_from(int64_t first, int64_t count, int64_t step) {
  std::vector<int> ranks;
  for (int64_t i = 0; i < count; ++i) ranks.push_back(static_cast<int>(first + i * step));
  return ranks;
}

}  // namespace

RankGrid::RankGrid(std::shared_ptr<World> world, const Parallel& parallel)
    : world_(std::move(world)),
      sizes_(parallel.of(world_->size())),
      data_(world_->group(ranks_from(offset_index(), sizes_.data, sizes_.offset))),
      offset_(world_->group(ranks_from(data_index() * sizes_.offset, sizes_.offset, 1))) {}

torch::Tensor RankGrid::counted_once(const torch::Tensor& values) const {
  return offset_index() == 0 ? values : torch::zeros_like(values);
}

void RankGrid::sum_in_order(std::vector<double>& numbers) const {
  const auto count = static_cast<int64_t>(numbers.size());
  auto all = torch::zeros({offset_size(), count}, torch::kDouble);
  all[offset_index()].copy_(torch::tensor(numbers, torch::kDouble));
  offset_.sum(all);  // of one number and zeros
  const auto* values = all.data_ptr<double>();
  for (int64_t i = 0; i < count; ++i) {
    numbers[i] = 0;
    for (int64_t rank = 0; rank < offset_size(); ++rank) numbers[i] += values[rank * count + i];
  }
}

}  // namespace translution
