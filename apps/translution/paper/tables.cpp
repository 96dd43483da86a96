#include "apps/translution/paper/tables.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/core/names.h"

namespace translution {

using namespace detail;

extern const char* const embedded_tables;  // paper/tables.json
}  // namespace translution

namespace translution::cli {
namespace {

using Json = nlohmann::ordered_json;

const Json& all_tables() {
  static const Json tables = Json::parse(embedded_tables);
  return tables;
}

template <typename Value>
std::optional<Value> optional_value(const Json& row, const char* key) {
  if (!row.contains(key) || row[key].is_null()) return std::nullopt;
  return row[key].get<Value>();
}

ModelOptions to_options(const Json& row) {
  auto options = ModelOptions::named(row.at("model"));
  options.position.method = parse_name("method", kMethods, row.at("method"));
  if (const auto side = optional_value<int64_t>(row, "image_size"))
    options.image_size = {*side, *side};
  options.channels = row.value("channels", options.channels);
  options.classes = row.value("classes", options.classes);
  options.vocabulary = row.value("vocabulary", options.vocabulary);
  options.position.relative_dim = row.value("relative_dim", options.position.relative_dim);
  options.position.shared_qkv = row.value("shared_qkv", options.position.shared_qkv);
  options.input_embedding = optional_value<bool>(row, "input_embedding");
  if (const auto encoding = optional_value<std::string>(row, "encoding"))
    options.position.encoding = parse_name("encoding", kEncodings, *encoding);
  return options;
}

PaperRow to_row(Json row, const Json& settings) {
  for (const auto& [key, value] : settings.items())
    if (!row.contains(key)) row[key] = value;
  PaperRow result{to_options(row),
                  optional_value<std::string>(row, "printed_millions"),
                  optional_value<int64_t>(row, "parameters"),
                  {},
                  row.value("out_of_memory", false)};
  for (const auto& [metric, value] : row.at("results").items())
    result.results.emplace_back(
        metric, value.is_null() ? std::nullopt : std::optional<double>(value.get<double>()));
  return result;
}

}  // namespace

std::optional<bool> PaperRow::agrees(int64_t count) const {
  if (!printed_millions) return std::nullopt;
  const size_t point = printed_millions->find('.');
  const int decimals =
      point == std::string::npos ? 0 : static_cast<int>(printed_millions->size() - point - 1);
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", decimals, static_cast<double>(count) / 1e6);
  return *printed_millions == text;
}

std::vector<std::string> paper_table_names() {
  std::vector<std::string> names;
  for (const auto& [name, table] : all_tables().items()) names.push_back(name);
  return names;
}

PaperTable paper_table(const std::string& name) {
  const Json& tables = all_tables();
  require(tables.contains(name), "unknown table '", name, "'",
          name_hint(name, paper_table_names()));
  const Json& table = tables[name];
  PaperTable result{name, table.at("title"), {}};
  for (const auto& row : table.at("rows")) result.rows.push_back(to_row(row, table.at("settings")));
  return result;
}

}  // namespace translution::cli
