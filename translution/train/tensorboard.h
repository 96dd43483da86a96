#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translution {

/// CRC-32C (Castagnoli polynomial) of the bytes.
uint32_t crc32c(std::string_view bytes);

/// The event files of a directory, in no order.
std::vector<std::string> event_files(const std::string& directory);

/// The path of a new event file, `events.out.tfevents.<seconds>.<host>`: the last in the order in
/// which TensorBoard reads the files of a directory.
std::string new_event_path(const std::string& directory);

/// The first bytes of an event file. TensorBoard forgets what files before it said.
std::string event_file_head();

/// A record of an event file: values by tag at one step, now. TensorBoard keeps floats.
std::string scalar_event(int64_t step, const std::vector<std::pair<std::string, double>>& values);

}  // namespace translution
