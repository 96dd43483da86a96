#pragma once

#include <cstdint>

#include "translution/core/export.h"
#include "translution/core/precision.h"
#include "translution/core/settings.h"

namespace translution {

enum class Schedule { cosine, constant };

inline constexpr Named<Schedule> kSchedules[] = {
    {Schedule::cosine, "cosine", "falls to min-lr along half a cosine"},
    {Schedule::constant, "constant", "stays where warm-up has brought it"},
};

/// How a model is trained. A step is one update of the weights.
struct TRANSLUTION_API TrainOptions {
  int64_t epochs = 1;      ///< passes over the training data…
  int64_t steps = 0;       ///< …or so many steps, if not 0
  int64_t batch = 256;     ///< samples of a step
  int64_t accumulate = 1;  ///< parts in which a batch is worked through, to save memory

  double lr = 1e-3, min_lr = 0;
  Schedule schedule = Schedule::cosine;
  int64_t warmup = 0;  ///< steps in which the rate rises from 0
  double weight_decay = 0.05;
  double beta2 = 0.999;
  double clip = 1;  ///< of the gradients' global norm; 0: none
  double label_smoothing = 0;
  Precision precision = Precision::float32;  ///< of products; weights are float32 in either

  uint64_t seed = 0;
  std::string device = "cpu";  ///< to compute on (train/device.h)
  int64_t log_every = 20;      ///< steps
  int64_t eval_every = 0;      ///< steps; 0: after every epoch
  int64_t save_every = 0;      ///< steps; 0: after every epoch
  int64_t keep = 3;            ///< checkpoints beside the best
  int64_t workers = 1;         ///< threads that load data

  void check() const;
};

/// The rate at a step (counted from 0) of a run of `total` steps.
TRANSLUTION_API double learning_rate(const TrainOptions& options, int64_t step, int64_t total);

TRANSLUTION_API const Settings<TrainOptions>& train_settings();

}  // namespace translution
