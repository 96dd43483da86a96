#pragma once

#include <torch/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "translution/io/safetensors.h"
#include "translution/train/manifest.h"

namespace translution {

/// Everything that a run needs to resume.
struct CheckpointContent {
  NamedTensors model, optimizer;
  nlohmann::json state;  ///< of the trainer: counters, options, class names
  /// Called with bytes of these tensors once they are in a file; may be empty.
  std::function<void(std::string_view bytes)> written = {};
  /// Writes a file of tensors; empty: this process has all of them.
  std::function<FileRecord(const std::string& path, const NamedTensors&)> write = {};
};

/// A checkpoint is a directory with model.safetensors, optimizer.safetensors and manifest.json. The
/// manifest stores its own checksum, and size and checksum of the other two. CheckpointStore writes
/// checkpoints.
struct Checkpoint {
  std::string path;
  int64_t step = 0;
  bool best = false;  ///< the best so far when it was saved
  CheckpointContent content;
};

/// Loads a checkpoint. `path` is the directory of a checkpoint, of several checkpoints, or of a
/// run; for the last two, the link `last` selects the checkpoint. Throws a one-line
/// std::runtime_error if a file is damaged (file, expected and found value) or holds weights that
/// are not finite.
Checkpoint load_checkpoint(const std::string& path);

/// The same without the optimizer's tensors, which are twice as large and only needed for training.
Checkpoint load_weights(const std::string& path);

/// A checkpoint whose manifest was read; its other files were not verified.
struct FoundCheckpoint {
  std::string path;
  Manifest manifest;
};

/// A checkpoint without its tensors, from its manifest.
Checkpoint without_tensors(const FoundCheckpoint& found);

/// Reads the manifest only. `path` as for load_checkpoint.
FoundCheckpoint find_checkpoint(const std::string& path);

/// Loads and verifies the weights; `convert` as for load_safetensors.
Checkpoint load_weights(const FoundCheckpoint& found, const TensorConversion& convert = {});

/// Reads the manifest only; the other files are not verified.
Manifest load_manifest(const std::string& path);

/// Throws if weights or moments are not finite: such a checkpoint is undamaged but unusable.
void require_finite(const Checkpoint& checkpoint);

struct NewestWhole {
  std::optional<Checkpoint> checkpoint;  ///< absent if none is undamaged
  std::vector<std::string> skipped;      ///< one message per newer, damaged checkpoint
};

/// Loads the undamaged checkpoint with the highest step from a directory of checkpoints. Writes
/// nothing.
NewestWhole newest_whole(const std::string& directory);
/// The same without its tensors: compares sizes and checksums, and loads the manifest only.
NewestWhole newest_verified(const std::string& directory);

/// "step-00001234". A directory of checkpoints holds only such names, links, and names that begin
/// with a dot.
std::string checkpoint_name(int64_t step);

/// The steps of all checkpoints in the directory, damaged ones included, highest first.
std::vector<int64_t> list_steps(const std::string& directory);

}  // namespace translution
