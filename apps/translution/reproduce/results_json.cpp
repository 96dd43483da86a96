#include <algorithm>
#include <filesystem>

#include "apps/translution/reproduce/results.h"
#include "translution/core/error.h"
#include "translution/io/file.h"
#include "translution/io/strict_json.h"

namespace translution::cli {

using namespace detail;

namespace {

using Json = nlohmann::ordered_json;
constexpr int kDepth = 6;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

template <typename Value>
std::optional<Value> optional_at(const nlohmann::json& json, const char* key) {
  if (json.at(key).is_null()) return std::nullopt;
  return json.at(key).get<Value>();
}

// ------------------------------------------------------------------------------------- write

Json json_of(const RunResult& run) {
  return {{"name", run.name},           {"step", run.step},     {"steps", run.steps},
          {"finished", run.finished()}, {"seen", run.seen},     {"seconds", run.seconds},
          {"machine", run.machine},     {"commit", run.commit}, {"precision", run.precision}};
}

Json json_of(const FigureResult& figure) {
  return {{"name", figure.name},
          {"paper", or_null(figure.paper)},
          {"ours", or_null(figure.ours)},
          {"step", figure.step},
          {"run", figure.run},
          {"set", figure.set},
          {"metric", figure.metric}};
}

Json json_of(const RowName& name) {
  return {{"number", name.number},
          {"model", name.model},
          {"method", name.method},
          {"variant", name.variant},
          {"seed", name.seed}};
}

Json json_of(const StepResult& step) {
  Json json = json_of(static_cast<const RowName&>(step));
  json.update(Json{{"parameters", step.parameters},
                   {"batch", step.batch},
                   {"parts", step.parts},
                   {"data", step.data},
                   {"seconds", step.seconds},
                   {"peak_bytes", step.peak_bytes},
                   {"loss", step.loss},
                   {"command", step.command},
                   {"machine", step.machine},
                   {"commit", step.commit},
                   {"precision", step.precision}});
  return json;
}

Json json_of(const RowResult& row) {
  Json json = json_of(static_cast<const RowName&>(row));
  json.update(Json{{"paper_millions", or_null(row.paper_millions)},
                   {"parameters", row.parameters},
                   {"budget", row.budget},
                   {"command", row.command},
                   {"cuts", row.cuts},
                   {"figures", Json::array()},
                   {"runs", Json::array()}});
  for (const auto& figure : row.figures) json["figures"].push_back(json_of(figure));
  for (const auto& run : row.runs) json["runs"].push_back(json_of(run));
  return json;
}

// -------------------------------------------------------------------------------------- read

// Older results have no precision: they are float32.
std::string precision_in(const nlohmann::json& json) { return json.value("precision", "float32"); }

RunResult to_run(const nlohmann::json& json) {
  return {json.at("name"),    json.at("step"),    json.at("steps"),  json.at("seen"),
          json.at("seconds"), json.at("machine"), json.at("commit"), precision_in(json)};
}

FigureResult to_figure(const nlohmann::json& json) {
  return {json.at("name"),
          optional_at<double>(json, "paper"),
          optional_at<double>(json, "ours"),
          json.at("step"),
          json.at("run"),
          json.at("set"),
          json.at("metric")};
}

RowName to_name(const nlohmann::json& json) {
  return {json.at("number"), json.at("model"), json.at("method"), json.at("variant"),
          json.at("seed")};
}

StepResult to_step(const nlohmann::json& json) {
  return {to_name(json),      json.at("parameters"), json.at("batch"),  json.at("parts"),
          json.at("seconds"), json.at("peak_bytes"), json.at("loss"),   json.at("data"),
          json.at("command"), json.at("machine"),    json.at("commit"), precision_in(json)};
}

RowResult to_row(const nlohmann::json& json) {
  RowResult row{to_name(json),
                optional_at<std::string>(json, "paper_millions"),
                json.at("parameters"),
                json.at("budget"),
                json.at("command"),
                json.at("cuts").get<std::vector<std::string>>(),
                {},
                {}};
  for (const auto& figure : json.at("figures")) row.figures.push_back(to_figure(figure));
  for (const auto& run : json.at("runs")) row.runs.push_back(to_run(run));
  return row;
}

}  // namespace

nlohmann::ordered_json to_json(const Results& results) {
  Json json = {{"table", results.table},
               {"title", results.title},
               {"rows", Json::array()},
               {"steps", Json::array()}};
  for (const auto& row : results.rows) json["rows"].push_back(json_of(row));
  for (const auto& step : results.steps) json["steps"].push_back(json_of(step));
  return json;
}

Results parse_results(const std::string& text, const std::string& path) {
  try {
    check_strict_json(text, kDepth);
    const auto json = nlohmann::json::parse(text);
    Results results{json.at("table"), json.at("title")};
    for (const auto& row : json.at("rows")) results.rows.push_back(to_row(row));
    for (const auto& row : results.rows)
      ensure(row.figures.size() == results.rows.front().figures.size() && !row.runs.empty(),
             "expected runs and equally many figures in every row");
    for (const auto& step : json.at("steps")) results.steps.push_back(to_step(step));
    return results;
  } catch (const std::exception& error) {
    throw std::runtime_error(
        join(path, ": not a results file of `translution reproduce`: ", error.what()));
  }
}

std::vector<Results> read_results(const std::string& directory) {
  namespace fs = std::filesystem;
  ensure(fs::is_directory(directory), directory, ": no such directory");
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Results> all;
  for (const auto& path : paths) all.push_back(parse_results(read_file(path), path));
  return all;
}

}  // namespace translution::cli
