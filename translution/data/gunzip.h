#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace translution {

/// Whether the bytes begin with gzip's signature.
bool is_gzip(std::string_view bytes);

/// Decompresses gzip piece by piece: the header of the content can be checked before memory is
/// allocated for the rest. `bytes` must outlive it. Messages begin with `name`.
class Gunzip {
 public:
  Gunzip(std::string_view bytes, std::string name);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Writes the next `count` bytes, or fewer at the end of the content; returns how many. Throws
  /// std::runtime_error if the data is damaged.
  size_t read(uint8_t* to, size_t count);
  /// Whether all content has been read and its checksum is correct. Throws if bytes follow the
  /// gzip data.
  bool at_end();

 private:
  void feed();

  const std::string name_;
  std::string_view left_;  // not yet passed to zlib
  z_stream stream_{};
  bool ended_ = false;
};

}  // namespace translution
