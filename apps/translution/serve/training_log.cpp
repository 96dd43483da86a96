#include "training_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "translution/data/settings.h"
#include "translution/models/settings.h"
#include "translution/train/config.h"
#include "translution/train/metrics.h"
#include "translution/train/options.h"

namespace translution::serve {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPoints = 400;    // of a curve
constexpr double kRecentSeconds = 90;  // a training writes more often than that

bool is_drawn(const std::string& metric) { return metric == "loss" || metric == "top1"; }

LogSeries& series_of(std::vector<LogSeries>& all, const std::string& metric,
                     const std::string& split) {
  for (auto& series : all)
    if (series.metric == metric && series.split == split) return series;
  return all.emplace_back(LogSeries{metric, split, {}});
}

// Means of neighbours; the last point stays as it is.
void thin(LogSeries& series) {
  auto& points = series.points;
  const size_t group = (points.size() + kMostPoints - 1) / kMostPoints;
  if (group < 2) return;
  std::vector<std::pair<int64_t, double>> thinned;
  for (size_t begin = 0; begin < points.size(); begin += group) {
    const size_t end = std::min(points.size(), begin + group);
    double sum = 0;
    for (size_t p = begin; p < end; ++p) sum += points[p].second;
    thinned.emplace_back(points[end - 1].first, sum / static_cast<double>(end - begin));
  }
  thinned.back() = points.back();
  points = std::move(thinned);
}

template <typename Options>
void add_names(const Settings<Options>& groups, std::vector<std::string>& names) {
  for (const auto& group : groups)
    for (const auto& setting : group.settings) names.push_back(setting.name);
}

// The run's options of training; nothing without a readable config.toml.
std::optional<TrainOptions> training_of(const std::string& directory) {
  const std::string path = directory + "/config.toml";
  if (!fs::exists(path)) return std::nullopt;
  std::vector<std::string> names{"model", "threads", "from"};
  add_names(model_settings(), names);
  add_names(data_settings(), names);
  add_names(train_settings(), names);
  try {
    TrainOptions options;
    set_all(train_settings(), read_config(path, names), options);
    return options;
  } catch (const std::exception&) {
    return std::nullopt;  // of a newer version, or half-written
  }
}

void add_entry(const Metrics& entry, TrainingLog& log) {
  log.step = std::max(log.step, entry.step);
  for (const auto& [name, value] : entry.values) {
    if (is_drawn(name) && std::isfinite(value))
      series_of(log.series, name, entry.split).points.emplace_back(entry.step, value);
    if (name == "samples_per_s") log.samples_per_second = value;
  }
}

TrainingLog parse(const std::string& directory, const std::string& path) {
  TrainingLog log;
  const auto entries = read_metrics(path);
  for (const auto& entry : entries) add_entry(entry, log);
  for (auto& series : log.series) thin(series);
  const auto options = training_of(directory);
  if (!options || entries.empty()) return log;
  const auto& last = entries.back();
  log.steps = options->steps;
  if (log.steps == 0 && last.epoch > 0)
    log.steps = std::llround(static_cast<double>(options->epochs) * static_cast<double>(last.step) /
                             last.epoch);
  if (log.samples_per_second > 0 && log.step < log.steps)
    log.seconds_left =
        static_cast<double>((log.steps - log.step) * options->batch) / log.samples_per_second;
  return log;
}

double seconds_since_write(const std::string& path) {
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(path);
  return std::max(0.0, std::chrono::duration<double>(age).count());
}

}  // namespace

TrainingLog TrainingLogs::read(const std::string& directory) {
  const std::string path = directory + "/metrics.jsonl";
  const std::lock_guard lock(mutex_);
  if (!fs::exists(path)) return {};
  auto& cached = cached_[directory];
  const auto bytes = static_cast<int64_t>(fs::file_size(path));
  if (bytes != cached.bytes) cached = {bytes, parse(directory, path)};
  auto log = cached.log;
  const bool unfinished = log.steps == 0 || log.step < log.steps;
  log.running = unfinished && seconds_since_write(path) < kRecentSeconds;
  return log;
}

}  // namespace translution::serve
