#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "translution/distributed/rank_group.h"
#include "translution/distributed/world.h"
#include "translution/train/parallel.h"

namespace translution {

/// The ranks of a world as a grid: rank = data_index * offset_size + offset_index. A row is an
/// offset group, whose ranks take the same samples and own the parts of the slots. A column is a
/// data group, whose ranks own the same slots and take different samples.
class RankGrid {
 public:
  /// All ranks must give the same `parallel`.
  RankGrid(std::shared_ptr<World> world, const Parallel& parallel);

  int64_t data_size() const { return sizes_.data; }
  int64_t offset_size() const { return sizes_.offset; }
  int64_t data_index() const { return world_->rank() / sizes_.offset; }
  int64_t offset_index() const { return world_->rank() % sizes_.offset; }
  bool is_split() const { return sizes_.offset > 1; }

  RankGroup& data_group() const { return data_; }
  RankGroup& offset_group() const { return offset_; }

  /// Zeros on all ranks of an offset group but the first, so that a sum over the world counts what
  /// each of them has once.
  torch::Tensor counted_once(const torch::Tensor& values) const;
  /// Replaces each number by its sum over the offset group, added in the order of the ranks.
  void sum_in_order(std::vector<double>& numbers) const;

 private:
  const std::shared_ptr<World> world_;
  const Parallel sizes_;
  RankGroup &data_, &offset_;
};

}  // namespace translution
