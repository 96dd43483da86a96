#include "translution/train/offset_sum.h"

#include <ATen/ops/full.h>

namespace translution {

OffsetSum::OffsetSum(const std::string& name, RankGroup& group, const std::atomic<bool>& stop)
    : group_(group),
      stop_(stop),
      registration_(
          register_group(name, [this](const std::vector<at::Tensor>& tensors) { sum(tensors); })) {}

void OffsetSum::sum(const std::vector<at::Tensor>& tensors) {
  const auto ranks_that_stop = at::full({1}, stop_ ? 1 : 0, at::kFloat);
  auto all = tensors;
  all.push_back(ranks_that_stop);
  group_.tree_sum(all);
  if (ranks_that_stop.item<float>() > 0) agreed_ = true;
}

}  // namespace translution
