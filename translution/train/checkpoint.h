#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "translution/io/safetensors.h"
#include "translution/train/manifest.h"

namespace translution {

/// All that a run needs to go on.
struct CheckpointContent {
  NamedTensors model, optimizer;
  nlohmann::json state;  ///< of trainer, sampler and generators
};

/// A checkpoint is a directory: model.safetensors, optimizer.safetensors and manifest.json, which
/// knows size and checksum of the other two and its own. CheckpointStore writes them.
struct Checkpoint {
  std::string path;
  int64_t step = 0;
  bool best = false;  ///< when it was saved
  CheckpointContent content;
};

/// From a checkpoint's directory, a directory of checkpoints or a run; of the last two, what their
/// link `last` names. Damage is refused with one line: which file, what was expected and found; so
/// are weights that are not finite.
Checkpoint load_checkpoint(const std::string& path);

/// The same without the optimizer, which is twice as large as the model and only training needs.
Checkpoint load_weights(const std::string& path);

/// A checkpoint of which only the manifest was read.
struct FoundCheckpoint {
  std::string path;
  Manifest manifest;
};

/// `path` as for load_checkpoint.
FoundCheckpoint find_checkpoint(const std::string& path);

/// Its weights; `convert` as for load_safetensors.
Checkpoint load_weights(const FoundCheckpoint& found, const TensorConversion& convert = {});

/// Only the manifest, which says nothing yet about the other files.
Manifest load_manifest(const std::string& path);

/// Refuses weights or moments that are not finite: such a checkpoint is whole, and of no use.
void require_finite(const Checkpoint& checkpoint);

struct NewestWhole {
  std::optional<Checkpoint> checkpoint;  ///< absent if there is no whole one
  std::vector<std::string> skipped;      ///< a line for each damaged one that is newer
};

/// The checkpoint of the highest step that is whole, of a directory of checkpoints. Changes
/// nothing.
NewestWhole newest_whole(const std::string& directory);

/// "step-00001234"; directories of checkpoints hold such names only, apart from links and what
/// begins with a dot.
std::string checkpoint_name(int64_t step);

/// The steps of which the directory has a checkpoint, whole or not, from the highest down.
std::vector<int64_t> list_steps(const std::string& directory);

}  // namespace translution
