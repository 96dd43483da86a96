#pragma once

#include <string>

#include "translution/core/export.h"

namespace translution {

/// The place of this process among those that train together, as torchrun describes it to each.
struct WorldPlace {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< on this machine
  std::string address = "127.0.0.1";   ///< of rank 0, which serves the store where all meet
  int port = 29500;
};

/// The place that RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT
/// describe; a single process if neither RANK nor WORLD_SIZE is set. Throws std::invalid_argument
/// for a value that cannot be.
TRANSLUTION_API WorldPlace place_in_environment();

}  // namespace translution
