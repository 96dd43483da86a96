#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "translution/io/append.h"

namespace translution {

/// CRC-32C (Castagnoli polynomial) of the bytes.
uint32_t crc32c(std::string_view bytes);

/// Scalars for TensorBoard, in a file of their own: `events.out.tfevents.<seconds>.<host>`.
class TensorBoardWriter {
 public:
  /// Asks TensorBoard to forget what earlier files of the directory say from `first_step` on.
  TensorBoardWriter(const std::string& directory, int64_t first_step);

  /// The values by tag at one step. TensorBoard keeps floats.
  void add(int64_t step, const std::vector<std::pair<std::string, double>>& values);
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace translution
