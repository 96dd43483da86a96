#include "translution/models/memory_check.h"

#include "translution/core/error.h"
#include "translution/core/memory.h"
#include "translution/core/units.h"
#include "translution/models/cost.h"

namespace translution {

using namespace detail;

namespace {

std::string memory_there_is() { return in_bytes(static_cast<double>(usable_bytes())); }

std::string work_text(const char* work, const ModelOptions& model, int64_t samples) {
  return join(work, " ", model.name(), " with ", name_of(kMethods, model.position.method), ", ",
              grouped(samples), samples == 1 ? " sample" : " samples", " at a time,");
}

// Fewer samples help only where the model itself fits.
std::string what_to_lower(double least, const std::string& advice) {
  return least <= static_cast<double>(usable_bytes()) ? advice : "choose a smaller model";
}

}  // namespace

void require_memory(double bytes, const std::string& what, const std::string& advice) {
  ensure(bytes <= static_cast<double>(usable_bytes()), what, " takes ", in_bytes(bytes),
         " of memory, and there are ", memory_there_is(), "; ", advice);
}

void require_memory_to_train(const ModelOptions& model, int64_t samples,
                             const std::string& advice) {
  require_memory(model_cost(model, samples).training_bytes, work_text("training", model, samples),
                 what_to_lower(model_cost(model, 1).training_bytes, advice));
}

void require_memory_to_evaluate(const ModelOptions& model, int64_t samples,
                                const std::string& advice) {
  require_memory(model_cost(model, samples).evaluation_bytes,
                 work_text("evaluating", model, samples),
                 what_to_lower(model_cost(model, 1).evaluation_bytes, advice));
}

}  // namespace translution
