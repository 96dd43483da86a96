#include "translution/train/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// --------------------------------------------------------------------------------- protobuf
// A message is a sequence of fields: a key (field number and type), then the value.

enum Kind { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Seven bits per byte, lowest first; the top bit is set if more bytes follow.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

std::string key(int field, Kind kind) { return varint(field << 3 | kind); }

// Little-endian, as in protobuf and TFRecord and as in memory here.
template <typename Value>
std::string fixed(Value value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::string field(int number, const std::string& bytes) {
  return key(number, kBytes) + varint(bytes.size()) + bytes;
}
std::string field(int number, int64_t value) { return key(number, kVarint) + varint(value); }
std::string field(int number, double value) { return key(number, kFixed64) + fixed(value); }
std::string field(int number, float value) { return key(number, kFixed32) + fixed(value); }

// ----------------------------------------------------------------------------------- events

std::string event(int64_t step, const std::string& content) {
  return field(1, wall_time()) + field(2, step) + content;
}
std::string version() { return field(3, std::string("brain.Event:2")); }
std::string session_start() { return field(7, field(1, int64_t{1})); }

std::string summary(const std::vector<std::pair<std::string, double>>& values) {
  std::string bytes;
  for (const auto& [tag, value] : values)
    bytes += field(1, field(1, tag) + field(2, static_cast<float>(value)));
  return field(5, bytes);
}

// ---------------------------------------------------------------------------------- records

// TFRecord stores masked CRCs, since a CRC over data with embedded CRCs is unreliable.
std::string masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return fixed<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8u);
}

std::string record(const std::string& data) {
  const std::string length = fixed<uint64_t>(data.size());
  return length + masked_crc(length) + data + masked_crc(data);
}

constexpr const char* kEventFile = "events.out.tfevents.";

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  uint32_t crc = ~0u;
  for (const unsigned char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ byte) & 0xff];
  return ~crc;
}

std::vector<std::string> event_files(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename().string().rfind(kEventFile, 0) == 0) paths.push_back(entry.path());
  return paths;
}

// TensorBoard reads files in the order of their names.
std::string new_event_path(const std::string& directory) {
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  const std::string prefix = directory + "/" + kEventFile;
  auto seconds = static_cast<int64_t>(wall_time());
  for (const auto& path : event_files(directory))
    seconds = std::max<int64_t>(seconds, 1 + std::atoll(path.c_str() + prefix.size()));
  return join(prefix, seconds, ".", host);
}

std::string event_file_head() {
  return record(event(0, version())) + record(event(0, session_start()));
}

std::string scalar_event(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  return record(event(step, summary(values)));
}

}  // namespace translution
