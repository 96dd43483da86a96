#include "translution/distributed/place.h"

#include <cstdlib>

#include "translution/core/error.h"
#include "translution/core/settings.h"

namespace translution {

using namespace detail;

namespace {

constexpr int kMostRanks = 65536, kLastPort = 65535;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int number_in(const char* name, int least, int most, int fallback) {
  const auto text = variable(name);
  return text.empty() ? fallback : static_cast<int>(SettingValue{name, text}.number(least, most));
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
}

}  // namespace

WorldPlace place_in_environment() {
  WorldPlace place;
  const bool has_rank = !variable("RANK").empty(), has_size = !variable("WORLD_SIZE").empty();
  if (!has_rank && !has_size) return place;
  require(has_rank && has_size, has_rank ? "WORLD_SIZE" : "RANK", ": expected a number, as ",
          has_rank ? "RANK" : "WORLD_SIZE", " is set; set both, or neither");
  place.size = number_in("WORLD_SIZE", 1, kMostRanks, 1);
  place.rank = number_in("RANK", 0, place.size - 1, 0);
  if (const auto address = variable("MASTER_ADDR"); !address.empty()) place.address = address;
  place.port = number_in("MASTER_PORT", 1, kLastPort - 1, place.port);
  // Then the launcher listens there, with the store of its own version of c10d.
  if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True") ++place.port;
  const bool one_machine = is_loopback(place.address);
  place.local_size = number_in("LOCAL_WORLD_SIZE", 1, place.size, one_machine ? place.size : 1);
  place.local_rank =
      number_in("LOCAL_RANK", 0, place.local_size - 1, place.rank % place.local_size);
  return place;
}

}  // namespace translution
