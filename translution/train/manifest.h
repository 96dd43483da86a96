#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace translution {

/// What a file was when it was written.
struct FileRecord {
  int64_t bytes = 0;
  std::string checksum;  ///< XXH3-128 in hexadecimal
};

/// manifest.json of a checkpoint: all that is no tensor.
struct Manifest {
  int64_t step = 0;
  bool best = false;            ///< of all until then
  FileRecord model, optimizer;  ///< model.safetensors, optimizer.safetensors
  nlohmann::json state;         ///< of the trainer, as it was handed in
};

/// JSON of which the first entry is a checksum of all behind it. Refuses a state that would not
/// come back the same: numbers that are not finite, text that is not UTF-8, nesting deeper than 64.
std::string format_manifest(const Manifest& manifest);

/// Refuses, with one line and without a path, whatever format_manifest did not write.
Manifest parse_manifest(std::string_view text);

/// The text with the checksum for `rest`, which is what follows the checksum's digits.
std::string seal_manifest(std::string_view rest);

}  // namespace translution
