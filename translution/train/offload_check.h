#pragma once

#include <string>
#include <vector>

#include "translution/models/options.h"
#include "translution/train/run.h"

namespace translution {

/// A file of a directory for --offload, and the parameters in it.
struct OffloadFile {
  std::string name;
  std::vector<ParameterSpec> parameters;
};

/// The files of a model: what is before the blocks, each block, what is behind them.
std::vector<OffloadFile> offload_files(const ModelOptions& model);

/// Throws if a run cannot train with --offload: its directory is missing, read-only or holds the
/// files of another model; or memory or disk space do not suffice, also for its checkpoints.
/// `batch` is the number of samples of a step, `part` that of its largest part.
void check_offload(const RunOptions& options, int64_t batch, int64_t part);

}  // namespace translution
