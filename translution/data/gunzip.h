#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace translution {

/// Do the bytes begin as gzip does?
bool is_gzip(std::string_view bytes);

/// Unpacks gzip a piece at a time, so that the beginning can be looked at before memory is taken
/// for the rest. `bytes` must outlive it; `name` begins the messages.
class Gunzip {
 public:
  Gunzip(std::string_view bytes, std::string name);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// The next `count` bytes, or fewer where the content ends. Damage is refused.
  size_t read(uint8_t* to, size_t count);
  /// Has all been read, and was the checksum behind it right? Bytes behind that are refused.
  bool at_end();

 private:
  void feed();

  const std::string name_;
  std::string_view left_;  // not yet handed to zlib
  z_stream stream_{};
  bool ended_ = false;
};

}  // namespace translution
