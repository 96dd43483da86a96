#pragma once

#include <cstdint>

#include "translution/core/export.h"
#include "translution/core/precision.h"
#include "translution/core/settings.h"
#include "translution/train/parallel.h"

namespace translution {

enum class Schedule { cosine, constant };

inline constexpr Named<Schedule> kSchedules[] = {
    {Schedule::cosine, "cosine", "decays to min-lr along half a cosine"},
    {Schedule::constant, "constant", "stays at lr after warm-up"},
};

/// The loss of a number that a model predicts, in standard deviations of the training data.
enum class NumberLoss { squared, absolute };

inline constexpr Named<NumberLoss> kNumberLosses[] = {
    {NumberLoss::squared, "squared", "mean squared error"},
    {NumberLoss::absolute, "absolute", "mean absolute error"},
};

/// How the norm of the gradients is limited.
enum class ClipBy { global, layer, last };

inline constexpr Named<ClipBy> kClipBys[] = {
    {ClipBy::global, "global", "the norm of all gradients together"},
    {ClipBy::layer, "layer", "the norm of each layer's gradients"},
    {ClipBy::last, "last", "all gradients, by their norm in the previous step"},
};

/// Options of training. A step is one update of the weights.
struct TRANSLUTION_API TrainOptions {
  int64_t epochs = 1;      ///< passes over the training data, if steps is 0
  int64_t steps = 0;       ///< steps; 0: use epochs
  int64_t batch = 256;     ///< samples per step
  int64_t accumulate = 1;  ///< parts that a batch, or a shard of it, is split into, to save memory
  /// Shards of a batch, whose gradients are added as a binary tree; a power of two. 0: one for each
  /// process.
  int64_t shards = 0;
  Parallel parallel;  ///< how processes share the training

  double lr = 1e-3, min_lr = 0;
  Schedule schedule = Schedule::cosine;
  int64_t warmup = 0;  ///< steps in which the learning rate rises from 0
  double weight_decay = 0.05;
  double beta2 = 0.999;
  double clip = 1;  ///< maximum norm of the gradients; 0: no clipping
  ClipBy clip_by = ClipBy::global;
  double label_smoothing = 0;
  NumberLoss number_loss = NumberLoss::squared;  ///< of models that predict a number
  Precision precision = Precision::float32;      ///< of matrix products; weights are always float32

  uint64_t seed = 0;
  std::string device = "cpu";  ///< see train/device.h
  std::string offload;         ///< directory of the mapped weights and moments; empty: in memory
  int64_t log_every = 20;      ///< steps
  int64_t eval_every = 0;      ///< steps; 0: after every epoch
  int64_t save_every = 0;      ///< steps; 0: after every epoch
  int64_t keep = 3;            ///< newest checkpoints to keep, besides the best
  int64_t workers = 1;         ///< loader threads; 0: load on the training thread

  void check() const;
};

/// The learning rate at a step (counted from 0) of a run of `total` steps.
TRANSLUTION_API double learning_rate(const TrainOptions& options, int64_t step, int64_t total);

TRANSLUTION_API const Settings<TrainOptions>& train_settings();

}  // namespace translution
