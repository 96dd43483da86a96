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
#include "translution/train/metrics_log.h"
#include "translution/train/tensorboard.h"

namespace translution {

using namespace detail;

namespace {

using OrderedJson = nlohmann::ordered_json;

// A line has a few dozen values; anything far longer is damaged.
constexpr size_t kLongestLine = 1 << 16;

std::string jsonl_path(const std::string& directory) { return directory + "/metrics.jsonl"; }

// ---------------------------------------------------------------------------------- writing

bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != ',' && letter != '"' && letter != '\\';
  });
}

void check(const Metrics& metrics) {
  require(metrics.step >= 0 && std::isfinite(metrics.epoch),
          "metrics: expected a step of at least 0 and a finite epoch, got step ", metrics.step,
          ", epoch ", metrics.epoch);
  require(is_plain(metrics.split),
          "metrics: expected a split in printable ASCII without , \" and \\, got '", metrics.split,
          "'");
  std::set<std::string> names;
  for (const auto& [name, value] : metrics.values) {
    require(
        is_plain(name) && name != "step" && name != "epoch" && name != "split",
        "metrics: expected a name in printable ASCII without , \" and \\, other than step, epoch "
        "and split, got '",
        name, "'");
    require(names.insert(name).second, "metrics: '", name, "' is given twice in one entry");
  }
}

// JSON cannot express values that are not finite: they become "nan", "inf" and "-inf".
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

std::string event_of(const Metrics& metrics) {
  std::vector<std::pair<std::string, double>> tagged;
  for (const auto& [name, value] : metrics.values)
    tagged.emplace_back(name + "/" + metrics.split, value);
  return scalar_event(metrics.step, tagged);
}

// ---------------------------------------------------------------------------------- reading

std::optional<double> parse_number(const OrderedJson& value) {
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
    } else if (const auto parsed = parse_number(value); !parsed) {
      return {};
    } else if (name == "epoch") {
      has_epoch = std::isfinite(*parsed);
      metrics.epoch = *parsed;
    } else {
      metrics.values.emplace_back(name, *parsed);
    }
  }
  if (has_step && has_epoch && has_split && metrics.step >= 0) return metrics;
  return {};
}

// ----------------------------------------------------------------------------------- opening

// The entries of an existing log up to step `after`. Creates the directory if it does not exist.
std::vector<Metrics> entries_up_to(const std::string& directory, int64_t after, bool evaluated) {
  require(after >= -1, "metrics: expected a step of at least 0, or -1 for a new log, got ", after);
  disk::make_directories(directory);
  std::vector<Metrics> entries;
  if (after >= 0 && std::filesystem::exists(jsonl_path(directory)))
    for (const Metrics& metrics : read_metrics(jsonl_path(directory))) {
      const bool repeated = metrics.step == after && metrics.split != "train" && !evaluated;
      if (metrics.step <= after && !repeated) entries.push_back(metrics);
    }
  return entries;
}

// Overwrites a file with `text` and the formatted entries; returns its path.
std::string rewrite(const std::string& path, std::string text, const std::vector<Metrics>& entries,
                    std::string (*format)(const Metrics& metrics)) {
  for (const auto& metrics : entries) text += format(metrics);
  write_file_atomically(path, text);
  return path;
}

}  // namespace

const char* share_metric(Precision precision) {
  return precision == Precision::bf16 ? "share_of_bf16" : "share_of_sgemm";
}

MetricsLog::MetricsLog(const std::string& directory, int64_t after, bool evaluated)
    : MetricsLog(directory, entries_up_to(directory, after, evaluated)) {}

MetricsLog::MetricsLog(const std::string& directory, const std::vector<Metrics>& entries)
    : log_(rewrite(jsonl_path(directory), "", entries, json_line)),
      events_(rewrite(new_event_path(directory), event_file_head(), entries, event_of)) {
  for (const auto& path : event_files(directory))
    if (path != events_.path()) disk::remove(path);  // the new file makes TensorBoard discard it
}

void MetricsLog::add(const Metrics& metrics) {
  check(metrics);
  log_.write(json_line(metrics));
  events_.write(event_of(metrics));
}

void MetricsLog::sync() { log_.sync(); }

void write_metrics_csv(const std::string& directory) {
  rewrite(directory + "/metrics.csv", "step,epoch,split,name,value\n",
          read_metrics(jsonl_path(directory)), csv_lines);
}

std::vector<Metrics> parse_metrics(std::string_view bytes, const std::string& path) {
  std::vector<Metrics> entries;
  int64_t line = 1;
  for (size_t begin = 0; begin < bytes.size(); ++line) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const auto text = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (auto metrics = parse_line(text)) {
      entries.push_back(std::move(*metrics));
    } else {
      ensure(begin >= bytes.size(), path, ": line ", line,
             " is damaged: expected an object with step, epoch, split and numbers, got '",
             text.substr(0, 60), "'; remove that line");
    }
  }
  return entries;
}

std::vector<Metrics> read_metrics(const std::string& path) {
  return parse_metrics(read_file(path), path);
}

}  // namespace translution
