#include "translution/data/batch_order.h"

#include <algorithm>
#include <numeric>

#include "translution/core/error.h"
#include "translution/core/random.h"

namespace translution {

using namespace detail;

namespace {

constexpr uint64_t kOrder = 0x0D3D;  // key of these draws: independent of others with the seed

}  // namespace

BatchOrderOptions training_order(int64_t batch, uint64_t seed, int64_t epoch, int64_t index) {
  return {batch, /*shuffle=*/true, /*once=*/false, seed, epoch, index, {}, 1};
}

BatchOrderOptions evaluation_order(int64_t batch) {
  return {batch, /*shuffle=*/false, /*once=*/true, 0, 0, 0, {}, 1};
}

BatchOrder::BatchOrder(int64_t size, const BatchOrderOptions& options)
    : size_(size), options_(options), epoch_(options.epoch), index_(options.index) {
  require(size >= 1, "loader: the data set is empty");
  require(options.batch >= 1, "loader: expected at least 1 sample per batch, got ", options.batch);
  batch_ = std::min(options.batch, size);
  batches_ = options.once ? (size + batch_ - 1) / batch_ : size / batch_;
  require(epoch_ >= 0 && 0 <= index_ && index_ <= batches_, "loader: cannot begin at batch ",
          index_, " of epoch ", epoch_, ": an epoch has ", batches_, " batches");
  require(options.shards.all <= batch_, "loader: cannot cut a batch of ", batch_, " samples into ",
          options.shards.all);
}

std::optional<BatchPlan> BatchOrder::next() {
  if (index_ >= batches_) {
    if (options_.once) return {};
    ++epoch_;
    index_ = 0;
    order_.clear();
  }
  if (options_.shuffle && order_.empty())
    order_ = permutation(size_, Random({options_.seed, static_cast<uint64_t>(epoch_), kOrder}));
  const auto& shards = options_.shards;
  const int64_t shard = shards.first + shard_, samples = std::min(batch_, size_ - index_ * batch_);
  const int64_t first = index_ * batch_ + samples * shard / shards.all;
  const int64_t count = index_ * batch_ + samples * (shard + 1) / shards.all - first;
  BatchPlan plan{epoch_, index_, std::vector<int64_t>(count), shard};
  if (++shard_ == shards.count) shard_ = 0, index_ += options_.every;
  std::iota(plan.samples.begin(), plan.samples.end(), first);
  if (options_.shuffle)
    for (int64_t& sample : plan.samples) sample = order_[sample];
  return plan;
}

}  // namespace translution
