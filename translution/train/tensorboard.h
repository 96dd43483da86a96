#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translution {

/// CRC-32C (Castagnoli polynomial) of the bytes.
uint32_t crc32c(std::string_view bytes);

/// The paths of the event files in a directory, unordered.
std::vector<std::string> event_files(const std::string& directory);

/// The path of a new event file, `events.out.tfevents.<seconds>.<host>`. Its name sorts after those
/// of the existing event files: TensorBoard reads files in that order.
std::string new_event_path(const std::string& directory);

/// The first records of an event file. They make TensorBoard discard the data of earlier files.
std::string event_file_head();

/// A record of an event file: values by tag at one step, with the current time, stored as floats.
std::string scalar_event(int64_t step, const std::vector<std::pair<std::string, double>>& values);

}  // namespace translution
