#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/sources.h"
#include "translution/models/network.h"

namespace translution {

/// A trained model, loaded from disk.
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
/// `translution convert` wrote, with its weights, ready for evaluation. It computes in the given
/// precision; by default in that of its run, and a file in float32. In bf16, matrices are held in
/// bfloat16: 2 bytes per weight.
TRANSLUTION_API Trained load_trained(const std::string& path,
                                     std::optional<Precision> precision = {});

/// A JPEG or PNG file as the model sees it, [1,channels,rows,cols]: for colour as in evaluation
/// (resized, the middle cropped, normalised), in grey fitted to the model's canvas.
TRANSLUTION_API torch::Tensor load_picture(const ModelOptions& model, const std::string& file);

/// Opens the data that the model was trained on, with the settings in `changed` ("data",
/// "eval-limit", …) replaced. `report` is told of each broken image.
TRANSLUTION_API DataSource open_data_of(const Trained& trained,
                                        const std::map<std::string, std::string>& changed = {},
                                        const std::function<void(const std::string&)>& report = {});

}  // namespace translution
