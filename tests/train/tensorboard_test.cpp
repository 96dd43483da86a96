#include "translution/train/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/support/temp_dir.h"
#include "translution/train/metrics_log.h"

namespace translution::testing {
namespace {

// ------------------------------------------- an independent reader, after the file format

// CRC-32C, bit by bit.
uint32_t slow_crc(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const unsigned char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool low = (crc ^ byte >> bit) & 1;
      crc = crc >> 1 ^ (low ? 0x82f63b78 : 0);
    }
  return ~crc;
}

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  bool at_end() const { return at_ == bytes_.size(); }

  std::string take(size_t count) {
    if (count > bytes_.size() - at_) throw std::runtime_error("file is too short");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }

  template <typename Value>
  Value fixed() {
    Value value;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }

  void check_crc(const std::string& of) {
    const uint32_t rotated = fixed<uint32_t>() - 0xa282ead8;
    EXPECT_EQ(rotated << 15 | rotated >> 17, slow_crc(of));
  }

  std::string record() {
    const std::string length = take(8);
    check_crc(length);
    const std::string data = take(Reader(length).fixed<uint64_t>());
    check_crc(data);
    return data;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  bool starts_session = false;
  std::map<std::string, float> values;
};

void read_value(const std::string& bytes, Event& event) {
  Reader reader(bytes);
  EXPECT_EQ(reader.varint(), 1u << 3 | 2);  // tag, a string
  const std::string tag = reader.take(reader.varint());
  EXPECT_EQ(reader.varint(), 2u << 3 | 5);  // simple_value, a float
  event.values[tag] = reader.fixed<float>();
  EXPECT_TRUE(reader.at_end());
}

void read_summary(const std::string& bytes, Event& event) {
  for (Reader reader(bytes); !reader.at_end();) {
    EXPECT_EQ(reader.varint(), 1u << 3 | 2);
    read_value(reader.take(reader.varint()), event);
  }
}

Event read_event(const std::string& bytes) {
  Event event;
  for (Reader reader(bytes); !reader.at_end();) switch (reader.varint()) {
      case 1 << 3 | 1:
        event.wall_time = reader.fixed<double>();
        break;
      case 2 << 3 | 0:
        event.step = static_cast<int64_t>(reader.varint());
        break;
      case 3 << 3 | 2:
        event.version = reader.take(reader.varint());
        break;
      case 5 << 3 | 2:
        read_summary(reader.take(reader.varint()), event);
        break;
      case 7 << 3 | 2:
        event.starts_session = reader.take(reader.varint()) == std::string("\x08\x01", 2);
        break;
      default:
        throw std::runtime_error("unknown field");
    }
  return event;
}

// The event files of a directory in the order in which TensorBoard reads them.
std::vector<std::string> files_in_order(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename().string().rfind("events.out.tfevents.", 0) == 0)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Event> events_of(const std::string& path) {
  std::vector<Event> events;
  for (Reader reader(get_bytes(path)); !reader.at_end();)
    events.push_back(read_event(reader.record()));
  return events;
}

// ------------------------------------------------------------------------------------- tests

TEST(Crc32c, MatchesKnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  falling.assign(rising.rbegin(), rising.rend());
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c(falling), 0x113fdb5cu);
}

TEST(TensorBoard, EventsReadBack) {
  const TempDir directory;
  auto bytes = event_file_head();
  bytes += scalar_event(0, {{"loss/train", 0.1}});
  bytes += scalar_event(int64_t{1} << 40, {{"loss/train", -3e-4}, {std::string(300, 'x'), 1e300}});
  put_bytes(new_event_path(directory.path()), bytes);
  const auto files = files_in_order(directory.path());
  ASSERT_EQ(files.size(), 1u);
  const auto events = events_of(files[0]);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.6e9);
  EXPECT_TRUE(events[1].starts_session);
  EXPECT_EQ(events[2].values, (std::map<std::string, float>{{"loss/train", 0.1f}}));
  EXPECT_EQ(events[3].step, int64_t{1} << 40);
  EXPECT_EQ(events[3].values.at("loss/train"), -3e-4f);
  EXPECT_EQ(events[3].values.at(std::string(300, 'x')), std::numeric_limits<float>::infinity());
  EXPECT_GE(events[3].wall_time, events[0].wall_time);
}

TEST(TensorBoard, ANewFileIsReadAfterExistingFiles) {
  const TempDir directory;
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i) {
    paths.push_back(new_event_path(directory.path()));
    put_bytes(paths.back(), "");
  }
  EXPECT_EQ(files_in_order(directory.path()), paths);
}

// A resumed run has one event file with the entries of the truncated log. The file makes a running
// TensorBoard discard what it has read.
TEST(TensorBoard, AResumedRunHasOneNewFileFromTheLog) {
  const TempDir directory;
  std::vector<std::string> seen;
  for (const int64_t resumed_at : {-1, 7, 4}) {
    MetricsLog log(directory.path(), resumed_at);
    for (int64_t step = resumed_at + 1; step <= 9; ++step)
      log.add({step, 0, "train", {{"loss", 0.5 + resumed_at}, {"top-1", 0.25}}});
    const auto files = files_in_order(directory.path());
    ASSERT_EQ(files.size(), 1u);
    EXPECT_TRUE(seen.empty() || seen.back() < files[0]);
    seen.push_back(files[0]);
    const auto events = events_of(files[0]);
    ASSERT_EQ(events.size(), 2u + 10u);
    EXPECT_EQ(events[0].version, "brain.Event:2");
    EXPECT_TRUE(events[1].starts_session);
    EXPECT_EQ(events[1].step, 0);
    const auto log_lines = read_metrics(directory / "metrics.jsonl");
    for (int64_t step = 0; step <= 9; ++step) {
      EXPECT_EQ(events[2 + step].step, step);
      const auto loss = static_cast<float>(log_lines[step].values[0].second);
      EXPECT_EQ(events[2 + step].values,
                (std::map<std::string, float>{{"loss/train", loss}, {"top-1/train", 0.25f}}));
    }
  }
}

TEST(TensorBoard, EventsAreWrittenAtOnce) {
  const TempDir directory;
  MetricsLog log(directory.path());
  for (size_t count = 1; count <= 3; ++count) {
    log.add({static_cast<int64_t>(count), 0, "train", {{"loss", 0.5}}});
    EXPECT_EQ(events_of(files_in_order(directory.path()).at(0)).size(), 2 + count);
  }
}

}  // namespace
}  // namespace translution::testing
