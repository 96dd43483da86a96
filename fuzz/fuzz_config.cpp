// Config files: any bytes are either rejected with a message, or are settings that stay the same
// when they are written and read again.

#include <cstdlib>
#include <stdexcept>

#include "translution/train/config.h"

namespace {

using translution::parse_config;

const std::vector<std::string> kKnown = {"model", "method", "lr", "steps", "eval-on", "batch"};

void check_message(const std::string& message) {
  if (message.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::map<std::string, std::string> settings;
  try {
    settings = parse_config({reinterpret_cast<const char*>(data), size}, "input", kKnown);
  } catch (const std::runtime_error& error) {
    check_message(error.what());
    return 0;
  } catch (const std::invalid_argument& error) {
    check_message(error.what());
    return 0;
  }
  const auto again = translution::format_config(
      {"again"}, {{"all", translution::SettingTexts(settings.begin(), settings.end())}});
  if (parse_config(again, "again", kKnown) != settings) std::abort();
  return 0;
}
