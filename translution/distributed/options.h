#pragma once

#include <string>

#include "translution/core/export.h"
#include "translution/core/settings.h"

namespace translution {

/// How processes that train together reach each other. Times are in seconds.
struct WorldOptions {
  std::string interface = "lo";   ///< network interface; lo: all on one machine
  double start_timeout = 120;     ///< until all processes have joined
  double rank_timeout = 10;       ///< until a process that died or hangs stops the others
  double exchange_timeout = 600;  ///< until a process must take part in an exchange
};

TRANSLUTION_API const Settings<WorldOptions>& world_settings();

}  // namespace translution
