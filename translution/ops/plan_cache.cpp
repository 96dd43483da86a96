#include "translution/ops/plan_cache.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "translution/ops/runs.h"

namespace translution {
namespace {

constexpr size_t kMostKept = 16;

struct Entry {
  std::vector<Run> runs;
  int64_t batch, width;
  std::shared_ptr<const kernels::SlotPlan> plan;

  bool fits(const std::vector<Run>& other, int64_t b, int64_t w) const {
    return batch == b && width == w && runs == other;
  }
};

}  // namespace

std::shared_ptr<const kernels::SlotPlan> slot_plan(const at::Tensor& runs_tensor, int64_t batch,
                                                   int64_t width) {
  static std::mutex mutex;
  static std::list<Entry> entries;  // latest use first
  auto runs = runs_from_tensor(runs_tensor);
  const std::lock_guard lock(mutex);
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.fits(runs, batch, width);
  });
  if (found != entries.end()) {
    entries.splice(entries.begin(), entries, found);
  } else {
    auto plan = std::make_shared<kernels::SlotPlan>(kernels::make_slot_plan(runs, batch, width));
    entries.push_front({std::move(runs), batch, width, std::move(plan)});
    if (entries.size() > kMostKept) entries.pop_back();
  }
  return entries.front().plan;
}

}  // namespace translution
