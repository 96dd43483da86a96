#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "translution/core/export.h"

namespace translution {

/// Reads a regular file. Throws std::runtime_error with the path and the reason.
class TRANSLUTION_API InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int64_t size() const { return size_; }
  int handle() const { return fd_; }
  /// Reads the next `count` bytes; throws if the file has fewer left.
  void read(void* to, int64_t count);
  /// The next byte that read() returns; the first one is 0.
  void seek(int64_t byte);

 private:
  const std::string path_;
  const int fd_;
  int64_t size_;
};

/// The bytes of the file. Throws std::runtime_error with the path and the reason if it cannot be
/// read or has more than `most` bytes.
TRANSLUTION_API std::string read_file(const std::string& path, int64_t most = int64_t{1} << 32);

/// Creates the directory and its missing parents.
TRANSLUTION_API void make_directories(const std::string& path);

/// A memory-mapped file, read-only. The system reads pages on first access.
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
