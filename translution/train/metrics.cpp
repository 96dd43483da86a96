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

// A line has a few dozen values; whatever is far longer is not one of ours.
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
          "metrics: expected a step from 0 and a finite epoch, got step ", metrics.step, ", epoch ",
          metrics.epoch);
  require(is_plain(metrics.split), "metrics: expected a split in plain letters, got '",
          metrics.split, "'");
  std::set<std::string> names;
  for (const auto& [name, value] : metrics.values) {
    require(is_plain(name) && name != "step" && name != "epoch" && name != "split",
            "metrics: expected a name in plain letters other than step, epoch and split, got '",
            name, "'");
    require(names.insert(name).second, "metrics: '", name, "' is given twice for one moment");
  }
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

std::string event_of(const Metrics& metrics) {
  std::vector<std::pair<std::string, double>> tagged;
  for (const auto& [name, value] : metrics.values)
    tagged.emplace_back(name + "/" + metrics.split, value);
  return scalar_event(metrics.step, tagged);
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

// ----------------------------------------------------------------------------------- opening

// What is to be kept of the log, if there is one. Makes the directory, if there is none.
std::vector<Metrics> kept_moments(const std::string& directory, int64_t after, bool evaluated) {
  require(after >= -1, "metrics: expected a step from 0, or -1 for a new log, got ", after);
  disk::make_directories(directory);
  std::vector<Metrics> kept;
  if (after >= 0 && std::filesystem::exists(jsonl_path(directory)))
    for (const Metrics& metrics : read_metrics(jsonl_path(directory))) {
      const bool again = metrics.step == after && metrics.split != "train" && !evaluated;
      if (metrics.step <= after && !again) kept.push_back(metrics);
    }
  return kept;
}

// Replaces a file by `text` and the moments in its format; returns its path.
std::string rewritten(const std::string& path, std::string text,
                      const std::vector<Metrics>& moments,
                      std::string (*format)(const Metrics& metrics)) {
  for (const auto& metrics : moments) text += format(metrics);
  write_file_atomically(path, text);
  return path;
}

}  // namespace

const char* share_metric(Precision precision) {
  return precision == Precision::bf16 ? "share_of_bf16" : "share_of_sgemm";
}

MetricsLog::MetricsLog(const std::string& directory, int64_t after, bool evaluated)
    : MetricsLog(directory, kept_moments(directory, after, evaluated)) {}

MetricsLog::MetricsLog(const std::string& directory, const std::vector<Metrics>& kept)
    : log_(rewritten(jsonl_path(directory), "", kept, json_line)),
      events_(rewritten(new_event_path(directory), event_file_head(), kept, event_of)) {
  for (const auto& path : event_files(directory))
    if (path != events_.path()) disk::remove(path);  // TensorBoard was told to forget it
}

void MetricsLog::add(const Metrics& metrics) {
  check(metrics);
  log_.write(json_line(metrics));
  events_.write(event_of(metrics));
}

void MetricsLog::sync() { log_.sync(); }

void write_metrics_csv(const std::string& directory) {
  rewritten(directory + "/metrics.csv", "step,epoch,split,name,value\n",
            read_metrics(jsonl_path(directory)), csv_lines);
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
             " is damaged: expected an object with step, epoch, split and numbers, got '",
             text.substr(0, 60), "'; remove that line");
    }
  }
  return moments;
}

std::vector<Metrics> read_metrics(const std::string& path) {
  return parse_metrics(read_file(path), path);
}

}  // namespace translution
