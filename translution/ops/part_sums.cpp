#include "translution/ops/part_sums.h"

#include <ATen/ATen.h>

#include "translution/core/message.h"
#include "translution/ops/constant.h"

namespace translution {

using namespace detail;

namespace {

struct OpenPairs {
  at::Tensor index;  // [P]: i * N + j of each open pair
};

OpenPairs find_open(const Pairs& pairs) {
  const OrdinaryTensors ordinary;  // they are held beyond this call
  std::vector<int64_t> index;
  for (size_t pair = 0; pair < pairs.open().size(); ++pair)
    if (pairs.open()[pair]) index.push_back(static_cast<int64_t>(pair));
  return {at::tensor(index, at::kLong)};
}

}  // namespace

void check_group(const char* op, const std::string& pairs, const std::string& group) {
  TORCH_CHECK(group.empty() || has_part(pairs), op, ": expected pairs with a part of the slots, ",
              "such as '7x7 part=0/2', for the group ", in_quotes(group), ", got ",
              in_quotes(pairs));
  TORCH_CHECK(!group.empty() || !has_part(pairs), op, ": expected the group that has the other ",
              "parts of the slots, got none with ", in_quotes(pairs),
              "; register one with register_group and name it");
}

PartSums::PartSums(const std::string& group, std::shared_ptr<const Pairs> pairs)
    : sum_(group.empty() ? GroupSum() : find_group(group)), pairs_(std::move(pairs)) {}

void PartSums::add(const std::vector<at::Tensor>& tensors) const {
  if (sum_) sum_(tensors);
}

void PartSums::add_pairs(const at::Tensor& numbers) const {
  if (!sum_) return;
  if (pairs_->all_open()) return sum_({numbers});
  const auto open = pairs_->derived<OpenPairs>(0, 0, [&] { return find_open(*pairs_); });
  const auto index = open->index.to(numbers.device());
  const auto rows = numbers.view({pairs_->queries() * pairs_->tokens(), -1});
  const auto packed = rows.index_select(0, index);
  sum_({packed});
  rows.index_copy_(0, index, packed);
}

void PartSums::add_defined(const std::vector<at::Tensor*>& tensors) const {
  if (!sum_) return;
  std::vector<at::Tensor> defined;
  for (at::Tensor* tensor : tensors)
    if (tensor->defined()) defined.push_back(*tensor = tensor->contiguous());
  if (!defined.empty()) sum_(defined);
}

}  // namespace translution
