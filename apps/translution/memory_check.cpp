#include "memory_check.h"

#include <fmt/format.h>

#include <new>
#include <stdexcept>

#include "table.h"
#include "translution/core/error.h"
#include "translution/core/memory.h"
#include "translution/models/cost.h"

namespace translution::cli {
namespace {

std::string memory_there_is() { return in_bytes(static_cast<double>(usable_bytes())); }

std::string work_text(const char* work, const ModelOptions& model, int64_t samples) {
  return fmt::format("{} {} with {}, {} sample{} at a time,", work, model.name(),
                     name_of(kMethods, model.position.method), grouped(samples),
                     samples == 1 ? "" : "s");
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

std::string describe_memory_error(const std::exception& error) {
  const std::string text = error.what();
  const std::string asked = "you tried to allocate ";  // LibTorch's words
  const size_t at = text.find(asked);
  const bool standard = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                        dynamic_cast<const std::length_error*>(&error) != nullptr;
  if (!standard && at == std::string::npos) return "";
  std::string what = "an allocation failed";
  if (!standard) {
    const size_t number = at + asked.size();
    what = text.substr(number, text.find(' ', number) - number) + " bytes could not be allocated";
  }
  return join("out of memory: ", what, ", and there are ", memory_there_is(),
              " in all; lower --batch, or choose a smaller model or input");
}

}  // namespace translution::cli
