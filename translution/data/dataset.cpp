#include "translution/data/dataset.h"

#include <algorithm>

namespace translution {
namespace {

class Limited : public Dataset {
 public:
  Limited(std::shared_ptr<const Dataset> dataset, int64_t count)
      : dataset_(std::move(dataset)), size_(std::min(count, dataset_->size())) {}

  int64_t size() const override { return size_; }
  Batch load(const BatchPlan& plan) const override { return dataset_->load(plan); }
  std::vector<std::string> classes() const override { return dataset_->classes(); }

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const int64_t size_;
};

}  // namespace

std::shared_ptr<const Dataset> first_of(std::shared_ptr<const Dataset> dataset, int64_t count) {
  if (count == 0) return dataset;
  return std::make_shared<Limited>(std::move(dataset), count);
}

}  // namespace translution
