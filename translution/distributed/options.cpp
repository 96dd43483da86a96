#include "translution/distributed/options.h"

namespace translution {

const Settings<WorldOptions>& world_settings() {
  using namespace fields;
  using O = WorldOptions;
  using F = Setting<WorldOptions>;
  static const Settings<WorldOptions> groups = {
      {"Several processes",
       {F("interface", &O::interface, any_text("NAME"),
          "network interface between processes; lo: all on this machine")
            .free_on_resume(),
        F("start-timeout", &O::start_timeout, real(0.1, 1e6),
          "seconds until all processes have joined")
            .free_on_resume(),
        F("rank-timeout", &O::rank_timeout, real(0.5, 1e6),
          "seconds until a process that died or hangs stops the others")
            .free_on_resume(),
        F("exchange-timeout", &O::exchange_timeout, real(1, 1e6),
          "seconds that processes wait for the slowest one in an exchange")
            .free_on_resume()}}};
  return groups;
}

}  // namespace translution
