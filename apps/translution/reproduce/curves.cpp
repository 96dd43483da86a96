#include "apps/translution/reproduce/curves.h"

#include <fmt/format.h>

#include <limits>
#include <sstream>

#include "translution/core/error.h"
#include "translution/core/settings.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kTitles = "step,epoch,split,name,value";

bool is_curve(const std::string& name) {
  return name == "loss" || name == "top1" || name == "top5" || name == "perplexity";
}

Metrics parse_line(const std::string& line, const std::string& where) {
  const auto fields = SettingValue{where, line}.words();
  ensure(fields.size() == 5, where, ": expected ", kTitles, ", got '", line, "'");
  const auto number = [&](const std::string& text) {
    return SettingValue{where, text}.real(0, std::numeric_limits<double>::max());
  };
  return {SettingValue{where, fields[0]}.number(),
          number(fields[1]),
          fields[2],
          {{fields[3], number(fields[4])}}};
}

}  // namespace

void write_curves(const std::string& run, const std::string& path) {
  std::string csv = std::string(kTitles) + "\n";
  for (const auto& moment : read_metrics(run + "/metrics.jsonl"))
    for (const auto& [name, value] : moment.values)
      if (is_curve(name))
        csv +=
            fmt::format("{},{},{},{},{}\n", moment.step, moment.epoch, moment.split, name, value);
  write_file_atomically(path, csv);
}

std::vector<Metrics> read_curves(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  ensure(line == kTitles, path, ": expected ", kTitles, " in the first line, got '", line, "'");
  std::vector<Metrics> curves;
  while (std::getline(lines, line))
    curves.push_back(parse_line(line, join(path, ":", curves.size() + 2)));
  return curves;
}

}  // namespace translution::cli
