#include "translution/train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "translution/core/error.h"
#include "translution/io/atomic_file.h"
#include "translution/io/disk.h"
#include "translution/io/file.h"

namespace translution {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A line has a few dozen values; whatever is far longer is not one of ours.
constexpr size_t kLongestLine = 1 << 16;
constexpr const char* kCsvHead = "step,epoch,split,name,value\n";

std::string jsonl_path(const std::string& directory) { return directory + "/metrics.jsonl"; }
std::string csv_path(const std::string& directory) { return directory + "/metrics.csv"; }

// ---------------------------------------------------------------------------------- writing

bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != ',' && letter != '"' && letter != '\\';
  });
}

void check(const Metrics& metrics) {
  require(metrics.step >= 0 && std::isfinite(metrics.epoch),
          "metrics: wanted a step from 0 and a finite epoch, got step ", metrics.step, ", epoch ",
          metrics.epoch);
  require(is_plain(metrics.split), "metrics: wanted a split in plain letters, got '", metrics.split,
          "'");
  for (const auto& [name, value] : metrics.values)
    require(is_plain(name) && name != "step" && name != "epoch" && name != "split",
            "metrics: wanted a name in plain letters other than step, epoch and split, got '", name,
            "'");
  std::set<std::string> names;
  for (const auto& [name, value] : metrics.values)
    require(names.insert(name).second, "metrics: '", name, "' is given twice for one moment");
}

// JSON has no word for values that are not finite: they become "nan", "inf" and "-inf".
OrderedJson to_json(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(fmt::format("{}", value));
}

std::string json_line(const Metrics& metrics) {
  OrderedJson line = {{"step", metrics.step}, {"epoch", metrics.epoch}, {"split", metrics.split}};
  for (const auto& [name, value] : metrics.values) line[name] = to_json(value);
  return line.dump() + "\n";
}

std::string csv_lines(const Metrics& metrics) {
  std::string lines;
  for (const auto& [name, value] : metrics.values)
    lines +=
        fmt::format("{},{},{},{},{}\n", metrics.step, metrics.epoch, metrics.split, name, value);
  return lines;
}

// ---------------------------------------------------------------------------------- reading

std::optional<double> number(const OrderedJson& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "nan" || value == "-nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return kInfinity;
  if (value == "-inf") return -kInfinity;
  return {};
}

std::optional<Metrics> parse_line(std::string_view text) {
  if (text.size() > kLongestLine) return {};
  const OrderedJson line = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return {};
  Metrics metrics;
  bool has_step = false, has_epoch = false, has_split = false;
  for (const auto& [name, value] : line.items()) {
    if (name == "step" && (has_step = value.is_number_integer())) {
      metrics.step = value.get<int64_t>();
    } else if (name == "split" && (has_split = value.is_string())) {
      metrics.split = value.get<std::string>();
    } else if (const auto known = number(value); !known) {
      return {};
    } else if (name == "epoch") {
      has_epoch = std::isfinite(*known);
      metrics.epoch = *known;
    } else {
      metrics.values.emplace_back(name, *known);
    }
  }
  if (has_step && has_epoch && has_split && metrics.step >= 0) return metrics;
  return {};
}

// What is to be kept of the log, if there is one. The CSV file is made anew from it, so that the
// two agree wherever a run was killed.
void cut(const std::string& directory, int64_t after, bool evaluated) {
  disk::make_directories(directory);
  std::string jsonl, csv = kCsvHead;
  if (after >= 0 && std::filesystem::exists(jsonl_path(directory)))
    for (const Metrics& metrics : read_metrics(jsonl_path(directory))) {
      const bool again = metrics.step == after && metrics.split != "train" && !evaluated;
      if (metrics.step > after || again) continue;
      jsonl += json_line(metrics);
      csv += csv_lines(metrics);
    }
  write_file_atomically(jsonl_path(directory), jsonl);
  write_file_atomically(csv_path(directory), csv);
}

// Has to run before the files are opened.
const std::string& prepared(const std::string& directory, int64_t after, bool evaluated) {
  require(after >= -1, "metrics: wanted a step from 0, or -1 for a new log, got ", after);
  cut(directory, after, evaluated);
  return directory;
}

}  // namespace

const char* share_metric(Precision precision) {
  return precision == Precision::bf16 ? "share_of_bf16" : "share_of_sgemm";
}

MetricsLog::MetricsLog(const std::string& directory, int64_t after, bool evaluated)
    : jsonl_(jsonl_path(prepared(directory, after, evaluated))),
      csv_(csv_path(directory)),
      tensorboard_(directory, after + 1) {}

void MetricsLog::add(const Metrics& metrics) {
  check(metrics);
  jsonl_.write(json_line(metrics));
  csv_.write(csv_lines(metrics));
  std::vector<std::pair<std::string, double>> tagged;
  for (const auto& [name, value] : metrics.values)
    tagged.emplace_back(name + "/" + metrics.split, value);
  tensorboard_.add(metrics.step, tagged);
}

void MetricsLog::sync() {
  jsonl_.sync();
  csv_.sync();
  tensorboard_.sync();
}

std::vector<Metrics> parse_metrics(std::string_view bytes, const std::string& path) {
  std::vector<Metrics> moments;
  int64_t line = 1;
  for (size_t begin = 0; begin < bytes.size(); ++line) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const auto text = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (auto metrics = parse_line(text)) {
      moments.push_back(std::move(*metrics));
    } else {
      ensure(begin >= bytes.size(), path, ": line ", line,
             " is damaged: wanted an object with step, epoch, split and numbers, got '",
             text.substr(0, 60), "'; remove that line");
    }
  }
  return moments;
}

std::vector<Metrics> read_metrics(const std::string& path) {
  return parse_metrics(read_file(path), path);
}

}  // namespace translution
