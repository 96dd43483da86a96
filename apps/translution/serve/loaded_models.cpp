#include "loaded_models.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "translution/core/error.h"

namespace translution::serve {

using namespace detail;

namespace {

constexpr size_t kMostWaiting = 24;
constexpr std::chrono::seconds kRefresh{2};
constexpr size_t kMostPlaces = 256;                // in a batch
constexpr double kShortest = 0.1, kLongest = 0.4;  // seconds that a batch should take

// Thrown between blocks when a request waits. Autograd and LibTorch propagate a std::exception.
struct GivenUp : std::exception {};

// Runs of the same name are told apart by their paths.
void make_names_unique(std::vector<RunFacts>& facts) {
  std::multiset<std::string> names;
  for (const auto& run : facts) names.insert(run.name);
  for (auto& run : facts)
    if (names.count(run.name) > 1) run.name = run.directory;
}

}  // namespace

LoadedModels::LoadedModels(const std::vector<std::string>& paths, const LoadOptions& options) {
  for (const auto& path : paths) runs_.emplace_back(path, options.precision, options.device);
  for (const auto& run : runs_) {
    const auto problem = misfit(run.facts());
    require(problem.empty(), problem);
  }
  publish();
  worker_ = std::make_unique<Worker>(kMostWaiting, [this] { return work_in_background(); });
}

// One input and one list of classes are shown for all runs. Why a run does not fit the first one;
// empty: it does.
std::string LoadedModels::misfit(const RunFacts& run) const {
  const auto has_model = [](const ServedRun& served) { return served.facts().problem.empty(); };
  const auto found = std::find_if(runs_.begin(), runs_.end(), has_model);
  if (found == runs_.end() || !run.problem.empty()) return "";
  const auto& first = found->facts();
  const auto pictures = [](const PictureFormat& format) {
    return join(format.rows, "x", format.cols, "x", format.channels);
  };
  if (pictures(run.format) != pictures(first.format))
    return join(run.directory, " takes pictures of ", pictures(run.format), ", ", first.directory,
                " of ", pictures(first.format), "; serve runs that take the same pictures");
  if (run.classes != first.classes)
    return join(run.directory, " has other classes than ", first.directory,
                "; serve runs of the same classes");
  return "";
}

// Makes the facts visible to other threads, and opens the test set with the first model.
void LoadedModels::publish() {
  std::vector<RunFacts> facts;
  for (const auto& run : runs_) facts.push_back(run.facts());
  make_names_unique(facts);
  std::shared_ptr<const Samples> samples = samples_;
  for (const auto& run : runs_)
    if (!samples && run.trained()) samples = std::make_shared<Samples>(*run.trained());
  const std::lock_guard lock(mutex_);
  facts_ = std::move(facts);
  samples_ = std::move(samples);
}

std::vector<RunFacts> LoadedModels::runs() {
  const std::lock_guard lock(mutex_);
  return facts_;
}

std::vector<float> LoadedModels::predict(size_t run, const RgbImage& picture) {
  return worker_->run([this, run, picture] { return runs_[run].predict({picture}).front(); });
}

AttentionMaps LoadedModels::attend(size_t run, const RgbImage& picture, int64_t query) {
  return worker_->run([this, run, picture, query] { return runs_[run].attend(picture, query); });
}

PlaceMap LoadedModels::map(size_t run, const RgbImage& image, int64_t known) {
  const auto facts = runs()[run];
  return maps_.ask(run, facts.step, image, facts.format, known);
}

std::vector<ReportNorms> LoadedModels::norms(size_t run) {
  return worker_->run([this, run] { return runs_[run].norms(); });
}

Sample LoadedModels::sample(int64_t index, const std::optional<std::string>& label) {
  std::shared_ptr<const Samples> samples;
  {
    const std::lock_guard lock(mutex_);
    samples = samples_;
  }
  if (!samples) throw Refusal(kConflict, "no run has a checkpoint yet");
  return samples->get(index, label);
}

TrainingLog LoadedModels::log(size_t run) { return logs_.read(runs()[run].directory); }

bool LoadedModels::work_in_background() {
  if (refresh_runs()) return true;
  const auto batch = maps_.next(batch_);
  if (!batch) return false;
  try {
    extend(*batch);
  } catch (const std::exception&) {
    return !worker_->wanted();  // given up; it is tried again
  }
  return true;
}

// A first checkpoint that does not fit the other runs is a problem of its run, which the page
// shows.
bool LoadedModels::refresh_runs() {
  if (Clock::now() - refreshed_ < kRefresh) return false;
  refreshed_ = Clock::now();
  bool changed = false;
  for (auto& run : runs_) {
    if (!run.refresh()) continue;
    changed = true;
    const auto problem = misfit(run.facts());
    if (!problem.empty()) run.reject(problem);
  }
  if (changed) publish();
  return changed;
}

// Predicts for the places of the batch, and adapts the size of the next one to the time it took.
void LoadedModels::extend(const PlaceMaps::Batch& batch) {
  const auto start = Clock::now();
  std::vector<RgbImage> pictures;
  for (const auto& image : batch.images) pictures.push_back(place(image, batch.format));
  const auto shares = runs_[batch.run].predict(pictures, [this] {
    if (worker_->wanted()) throw GivenUp();
  });
  std::vector<MapCell> cells;
  for (size_t p = 0; p < shares.size(); ++p) {
    const auto best = std::max_element(shares[p].begin(), shares[p].end());
    cells.push_back({batch.places[p], static_cast<int32_t>(best - shares[p].begin()), *best});
  }
  maps_.add(batch, cells);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (seconds < kShortest) batch_ = std::min(kMostPlaces, 2 * batch_);
  if (seconds > kLongest) batch_ = std::max<size_t>(1, batch_ / 2);
}

}  // namespace translution::serve
