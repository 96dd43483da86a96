#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "models.h"
#include "place_maps.h"
#include "samples.h"
#include "served_run.h"
#include "worker.h"

namespace translution::serve {

struct LoadOptions {
  std::optional<Precision> precision;
  std::string device = "cpu";
};

/// The runs of one server. Their models are used by one thread, the worker's.
class LoadedModels : public Models {
 public:
  /// Loads the runs. Throws if one cannot be loaded, or if they take different pictures.
  LoadedModels(const std::vector<std::string>& paths, const LoadOptions& options);

  std::vector<RunFacts> runs() override;
  std::vector<float> predict(size_t run, const RgbImage& picture) override;
  AttentionMaps attend(size_t run, const RgbImage& picture, int64_t query) override;
  PlaceMap map(size_t run, const RgbImage& image, int64_t known) override;
  std::vector<ReportNorms> norms(size_t run) override;
  Sample sample(int64_t index, const std::optional<std::string>& label) override;
  TrainingLog log(size_t run) override;

  /// Refuses further work and gives up the current one, so that the destructor does not wait.
  void stop() { worker_->stop(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::string misfit(const RunFacts& run) const;
  void publish();
  bool work_in_background();
  bool refresh_runs();
  void extend(const PlaceMaps::Batch& batch);

  std::vector<ServedRun> runs_;  // the worker's, after construction
  PlaceMaps maps_;
  TrainingLogs logs_;
  Clock::time_point refreshed_;
  size_t batch_ = 8;  // places that are evaluated together

  std::mutex mutex_;  // of what follows
  std::vector<RunFacts> facts_;
  std::shared_ptr<const Samples> samples_;

  std::unique_ptr<Worker> worker_;  // last: its thread uses the others
};

}  // namespace translution::serve
