#include "translution/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "translution/core/error.h"
#include "translution/report/html.h"
#include "translution/report/report_parts.h"

namespace translution {

using namespace detail;

namespace {

// ----------------------------------------------------------------------- pairs, run by run

std::vector<std::string> keys_of(const ReportData& data, ReportPairs ReportRun::*pairs) {
  std::vector<std::string> keys;
  for (const auto& run : data.runs)
    for (const auto& [key, value] : run.*pairs)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  return keys;
}

// The value of a key in each run; empty where a run does not have the key.
std::vector<std::string> values_of(const ReportData& data, ReportPairs ReportRun::*pairs,
                                   const std::string& key) {
  std::vector<std::string> values;
  for (const auto& run : data.runs) {
    const auto& all = run.*pairs;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& pair) { return pair.first == key; });
    values.push_back(found == all.end() ? "" : found->second);
  }
  return values;
}

HtmlTable empty_table(const ReportData& data) {
  HtmlTable table{{""}, {}};
  for (const auto& run : data.runs) table.head.push_back(run.name);
  return table;
}

void add_row(HtmlTable& table, const std::string& key, const std::vector<std::string>& values) {
  table.rows.push_back({key});
  table.rows.back().insert(table.rows.back().end(), values.begin(), values.end());
}

// --------------------------------------------------------------------------------- sections

std::string summary_table(const ReportData& data) {
  HtmlTable table = empty_table(data);
  for (const auto& key : keys_of(data, &ReportRun::summary))
    add_row(table, key, values_of(data, &ReportRun::summary, key));
  return table.rows.empty() ? "" : html_table(table);
}

// Entries that differ between runs as a table, the others as a list.
std::string config_part(const ReportData& data) {
  HtmlTable differing = empty_table(data);
  std::string common;
  for (const auto& key : keys_of(data, &ReportRun::config)) {
    const auto values = values_of(data, &ReportRun::config, key);
    if (std::all_of(values.begin(), values.end(), [&](const auto& v) { return v == values[0]; }))
      common += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_escape(key),
                            html_escape(values[0]));
    else
      add_row(differing, key, values);
  }
  std::string html = differing.rows.empty() ? "" : html_table(differing);
  if (common.empty()) return html;
  if (data.runs.size() > 1) html += "<h3>The same in all runs</h3>\n";
  return html + "<dl class=\"config\">\n" + common + "</dl>\n";
}

std::string run_part(const ReportRun& run, size_t index) {
  try {
    std::string html;
    for (size_t set = 0; set < run.evaluations.size(); ++set)
      html += report_evaluation(run.evaluations[set], fmt::format("run{}-{}", index, set));
    return html + report_norms(run.norms);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(join("report: run '", run.name, "': ", error.what()));
  }
}

}  // namespace

std::string make_report(const ReportData& data) {
  std::vector<HtmlSection> sections;
  const auto add = [&](const std::string& title, const std::string& content, int colour) {
    if (!content.empty()) sections.push_back({title, content, colour});
  };
  add("Summary", summary_table(data), -1);
  add("Curves", report_curves(data), -1);
  for (size_t i = 0; i < data.runs.size(); ++i)
    add(data.runs[i].name, run_part(data.runs[i], i), static_cast<int>(i));
  add("Configuration", config_part(data), -1);
  return html_page(data.title, data.subtitle, sections);
}

}  // namespace translution
