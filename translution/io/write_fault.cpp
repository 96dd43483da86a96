#include "translution/io/write_fault.h"

#include <cstdlib>
#include <mutex>

#include "translution/core/error.h"
#include "translution/core/message.h"

namespace translution {
namespace {

struct Setting {
  Setting() {
    if (const char* text = std::getenv("TRANSLUTION_WRITE_FAULT")) fault = WriteFault::parse(text);
  }

  std::mutex mutex;
  WriteFault fault;
  int64_t calls = 0;
};

Setting& setting() {
  static Setting it;
  return it;
}

}  // namespace

WriteFault WriteFault::parse(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string number = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool counts = !number.empty() && number.size() < 10 &&
                      number.find_first_not_of("0123456789") == std::string::npos;
  require(counts, "TRANSLUTION_WRITE_FAULT: wanted a fault and a call, such as enospc:7, got ",
          in_quotes(text));
  return {parse_name("fault", kFaults, text.substr(0, colon)), std::stoll(number)};
}

void set_write_fault(WriteFault fault) {
  auto& now = setting();
  const std::lock_guard lock(now.mutex);
  now.fault = fault;
  now.calls = 0;
}

int64_t count_disk_calls() {
  auto& now = setting();
  const std::lock_guard lock(now.mutex);
  return now.calls;
}

Fault next_fault() {
  auto& now = setting();
  const std::lock_guard lock(now.mutex);
  return ++now.calls == now.fault.call ? now.fault.kind : Fault::none;
}

}  // namespace translution
