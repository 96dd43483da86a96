#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/cloud_input.h"
#include "translution/data/sources.h"
#include "translution/models/network.h"
#include "translution/train/picture.h"

namespace translution {

/// A trained model, loaded from disk.
struct Trained {
  std::string path;  ///< of the checkpoint
  int64_t step = 0;
  std::map<std::string, std::string> config;  ///< model and data settings of the run
  std::vector<std::string> classes;
  std::shared_ptr<Network> network;
  bool names_classes = true;  ///< false: the file has no class names, `classes` are numbers
  int64_t vocabulary = 0;     ///< of the training text; that of the model may be larger
  std::vector<std::string> features = {};  ///< names of a point's features; empty: not known
};

/// Loads a model with its weights, in evaluation mode. `path` is a run, a checkpoint, a directory
/// of checkpoints, or a file that `translution convert` wrote. The default precision is that of the
/// run, and float32 for a file. In bf16, matrices are held in bfloat16: 2 bytes per weight.
TRANSLUTION_API Trained load_trained(const std::string& path,
                                     std::optional<Precision> precision = {});

/// The pictures that a vit model takes.
TRANSLUTION_API PictureFormat picture_format(const ModelOptions& model);

/// Loads a JPEG or PNG file as model input [1,channels,rows,cols]. Colour images are resized,
/// centre-cropped and normalised as in evaluation; grey images are resized to the model's image
/// size.
TRANSLUTION_API torch::Tensor load_picture(const ModelOptions& model, const std::string& file);

/// The clouds that a cloud model takes.
TRANSLUTION_API CloudFormat cloud_format(const Trained& trained);

/// Opens the data that the model was trained on, with the settings in `changed` ("data",
/// "eval-limit", …) replaced. Calls `report` with a message for each broken image. Throws if the
/// data does not fit the model or has other classes.
TRANSLUTION_API DataSource open_data_of(const Trained& trained,
                                        const std::map<std::string, std::string>& changed = {},
                                        const std::function<void(const std::string&)>& report = {});

}  // namespace translution
