#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace translution {

/// Size and checksum of a file when it was written.
struct FileRecord {
  int64_t bytes = 0;
  std::string checksum;  ///< XXH3-128 in hexadecimal
};

/// manifest.json of a checkpoint: everything but the tensors.
struct Manifest {
  int64_t step = 0;
  bool best = false;            ///< the best checkpoint so far
  FileRecord model, optimizer;  ///< model.safetensors, optimizer.safetensors
  nlohmann::json state;         ///< of the trainer, stored unchanged
};

/// JSON whose first entry is a checksum of everything after it. Throws std::invalid_argument at a
/// state that would not read back unchanged: numbers that are not finite, text that is not UTF-8,
/// nesting deeper than 64.
std::string format_manifest(const Manifest& manifest);

/// Throws a one-line std::runtime_error, without a path, at text that format_manifest did not
/// write.
Manifest parse_manifest(std::string_view text);

/// A manifest with a valid checksum; `rest` is the text after the checksum's digits.
std::string seal_manifest(std::string_view rest);

}  // namespace translution
