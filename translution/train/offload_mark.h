#pragma once

#include <cstdint>
#include <string>

#include "translution/models/options.h"

namespace translution {

/// What the files of a directory for --offload hold: offload.json. Written before the first change
/// of a step and after the last one, so that an interrupted update is never taken for a whole one.
struct OffloadMark {
  bool exists = false;
  std::string model;       ///< "vit-a/12 with translution", for messages
  std::string parameters;  ///< checksum of all names and shapes
  int64_t step = 0;        ///< the last whole step
  bool updating = false;   ///< true: the next step had begun to change weights
};

/// The mark of a model whose files are being filled.
OffloadMark offload_mark(const ModelOptions& model);

OffloadMark read_offload_mark(const std::string& directory);
void write_offload_mark(const std::string& directory, const OffloadMark& mark);

}  // namespace translution
