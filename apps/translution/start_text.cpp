#include "start_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "table.h"
#include "translution/core/units.h"

namespace translution::cli {

using namespace detail;
namespace {

bool ends_with(const std::string& text, const std::string& ending) {
  return text.size() > ending.size() &&
         text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

// The name without block number, ".weight" and ".bias": "mlp.up" for
// "backbone.blocks.3.mlp.up.bias".
std::string group_of(std::string name) {
  static const std::string kBlocks = "backbone.blocks.";
  if (name.rfind(kBlocks, 0) == 0) name.erase(0, name.find('.', kBlocks.size()) + 1);
  if (name == "attention.bias") return name;  // of relative_bias
  for (const std::string ending : {".weight", ".bias"})
    if (ends_with(name, ending)) name.erase(name.size() - ending.size());
  return name;
}

struct Way {
  int64_t tensors = 0, parameters = 0;
  std::vector<std::string> groups = {};
};

Way tensors_that(Start start, const WarmStart& weights) {
  Way way;
  for (const auto& tensor : weights.tensors) {
    if (tensor.start != start) continue;
    ++way.tensors;
    way.parameters += tensor.count;
    const auto group = group_of(tensor.name);
    if (std::find(way.groups.begin(), way.groups.end(), group) == way.groups.end())
      way.groups.push_back(group);
  }
  return way;
}

Table table_of(const WarmStart& weights) {
  Table table({{"weights"}, {"tensors", Align::right}, {"parameters", Align::right}, {""}});
  for (const auto& named : kStarts) {
    const auto way = tensors_that(named.value, weights);
    if (way.tensors == 0) continue;
    const bool listed = named.value != Start::taken;  // the rest of the model
    table.add({named.summary, grouped(way.tensors), grouped(way.parameters),
               listed ? fmt::format("{}", fmt::join(way.groups, ", ")) : ""});
  }
  return table;
}

}  // namespace

std::string start_text(const RunStart& start) {
  const auto& options = start.model.options;
  auto text = fmt::format("starts from {}: {} with {}\n", start.model.path, options.name(),
                          name_of(kMethods, options.position.method)) +
              table_of(start.weights).str();
  if (!start.head.empty())
    text += fmt::format("{} head: {}\n", start.takes_head ? "taken" : "new", start.head);
  for (const auto& change : start.weights.changes) text += change + "\n";
  return text + (start.weights.same_outputs ? "the outputs are the same at the start\n"
                                            : "the outputs differ at the start\n");
}

}  // namespace translution::cli
