#pragma once

#include <optional>
#include <string>
#include <vector>

#include "translution/data/sources.h"
#include "translution/models/network.h"
#include "translution/train/checkpoint.h"

namespace translution::cli {

/// A trained model as it is found on disk.
struct Trained {
  std::string path;  ///< of the checkpoint
  int64_t step = 0;
  std::map<std::string, std::string> config;  ///< model and data settings of its run
  std::vector<std::string> classes;
  std::shared_ptr<Network> network;
  bool names_classes = true;  ///< false: `classes` are numbers, since the file has no names
  int64_t vocabulary = 0;     ///< of the text that it learned from; the model may have more tokens
};

/// The model of a run, of a checkpoint, of a directory of checkpoints, or of a file that
/// `translution convert` wrote, with its weights. It computes in that precision; if none is given,
/// in that of its run, and a file has float32. In bf16, matrices are held in bfloat16
/// (models/bf16_weights.h).
Trained load_trained(const std::string& path, std::optional<Precision> precision = {});

/// To standard error: what is told of single files, such as broken images.
void print_line(const std::string& line);

/// The data that the model was trained on, with what `given` says otherwise. Messages about `given`
/// have "--" in front.
DataOptions data_options(const std::map<std::string, std::string>& config,
                         const std::map<std::string, std::string>& given, uint64_t seed);

/// The same for a trained model: image size and length are the model's.
DataSource open_data_of(const Trained& trained, const std::map<std::string, std::string>& given);

}  // namespace translution::cli
