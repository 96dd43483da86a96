#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "translution/core/export.h"

namespace translution {

/// A regular file, read from its beginning on. One line with the path and the reason where that
/// fails.
class TRANSLUTION_API InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int64_t size() const { return size_; }
  int handle() const { return fd_; }
  /// The next `count` bytes; the file must have them.
  void read(void* to, int64_t count);

 private:
  const std::string path_;
  const int fd_;
  int64_t size_;
};

/// The bytes of the file; one line with the path and the reason where it cannot be read, or where
/// it holds more than `most` bytes.
TRANSLUTION_API std::string read_file(const std::string& path, int64_t most = int64_t{1} << 32);

/// Makes the directory and those above it that do not exist.
TRANSLUTION_API void make_directories(const std::string& path);

/// A file seen as memory; only what is looked at is read.
class TRANSLUTION_API MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace translution
