#include "translution/train/parallel.h"

#include "translution/core/error.h"
#include "translution/models/cost.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kMostRanks = 65536;
constexpr const char* kGroup = "offset";  // the name of the offset group of this process

}  // namespace

std::string Parallel::text() const {
  if (data == 0) return offset == 1 ? "" : join("offset=", offset);
  return join("data=", data, ",offset=", offset);
}

Parallel Parallel::of(int64_t processes) const {
  Parallel result = *this;
  if (data == 0) result.data = std::max<int64_t>(1, processes / offset);
  require(result.data * offset == processes, "parallel: expected ", result.data * offset,
          " processes for data=", result.data, ",offset=", offset, ", got ", processes,
          "; start as many, or change --parallel");
  return result;
}

SlotShare Parallel::share(int64_t rank) const {
  if (offset == 1) return {};
  return {{rank % offset, offset}, kGroup};
}

void Parallel::check(const ModelOptions& model) const {
  if (offset == 1) return;
  require(model.family != Family::cloud,
          "parallel: expected a model of images or text for offset=", offset, ", got ",
          model.name(), "; use offset=1");
  for (const auto& spec : model_parameters(model))
    require(!spec.is_split() || spec.shape[0] >= offset,
            "parallel: expected at most offset=", spec.shape[0], " for ", model.name(),
            ", got offset=", offset, "; ", spec.name, " has ", spec.shape[0], " slots");
}

ModelOptions whole(ModelOptions model) {
  model.share = {};
  return model;
}

Parallel parse_parallel(const SettingValue& value) {
  Parallel parallel;
  for (const auto& word : value.words()) {
    const size_t end = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, end);
    require(end < word.size() && (name == "data" || name == "offset"), value.name,
            ": expected data=D,offset=P, got '", value.text, "'");
    (name == "data" ? parallel.data : parallel.offset) =
        SettingValue{value.name + " " + name, word.substr(end + 1)}.number(1, kMostRanks);
  }
  return parallel;
}

}  // namespace translution
