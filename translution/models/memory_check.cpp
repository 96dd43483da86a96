#include "translution/models/memory_check.h"

#include "translution/core/error.h"
#include "translution/core/memory.h"
#include "translution/core/units.h"
#include "translution/models/cost.h"

namespace translution {

using namespace detail;

namespace {

std::string available_memory() { return in_bytes(static_cast<double>(usable_bytes())); }

std::string describe(const char* work, const ModelOptions& model, int64_t samples) {
  return join(work, " ", model.name(), " with ", name_of(kMethods, model.position.method), ", ",
              grouped(samples), samples == 1 ? " sample" : " samples", " at a time,");
}

// The caller's advice, which is to lower the batch, helps only if one sample fits (`least` bytes).
std::string advice_for(double least, const std::string& advice) {
  return least <= static_cast<double>(usable_bytes()) ? advice : "choose a smaller model";
}

}  // namespace

void require_memory(double bytes, const std::string& what, const std::string& advice) {
  ensure(bytes <= static_cast<double>(usable_bytes()), what, " needs ", in_bytes(bytes),
         " of memory, but only ", available_memory(), " are available; ", advice);
}

void require_memory_to_train(const ModelOptions& model, int64_t samples, const std::string& advice,
                             const SharedTraining& shared) {
  const auto bytes = [&](int64_t count) {
    const auto cost = model_cost(model, count);
    return static_cast<double>(shared.on_this_machine) *
           (cost.training_bytes + sharing_bytes(cost, shared));
  };
  auto what = describe("training", model, samples);
  if (shared.on_this_machine > 1)
    what += join(" in each of ", shared.on_this_machine, " processes on this machine,");
  auto smaller = advice_for(bytes(1), advice);
  if (smaller != advice && offload_bytes(model, samples, 1) <= static_cast<double>(usable_bytes()))
    smaller += ", or train with --offload DIR";
  require_memory(bytes(samples), what, smaller);
}

void require_memory_to_offload(const ModelOptions& model, int64_t samples, int64_t part,
                               const std::string& advice) {
  require_memory(offload_bytes(model, samples, part),
                 describe("training", model, samples) + " with --offload",
                 advice_for(offload_bytes(model, 1, 1), advice));
}

void require_memory_to_evaluate(const ModelOptions& model, int64_t samples,
                                const std::string& advice) {
  require_memory(model_cost(model, samples).evaluation_bytes,
                 describe("evaluating", model, samples),
                 advice_for(model_cost(model, 1).evaluation_bytes, advice));
}

}  // namespace translution
