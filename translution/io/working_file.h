#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace translution {

/// A new file of zeros whose disk space is allocated and which is mapped for reading and writing.
/// The system reads pages on first access and writes changed pages back. An existing file of that
/// name is emptied first. Throws std::runtime_error with the path and the reason.
class WorkingFile {
 public:
  WorkingFile(const std::string& path, int64_t bytes);
  ~WorkingFile();
  WorkingFile(const WorkingFile&) = delete;
  WorkingFile& operator=(const WorkingFile&) = delete;

  char* data() const { return data_; }
  bool contains(std::string_view bytes) const;

  /// The three calls take bytes of this file, from the start of a page.
  void prefetch(std::string_view bytes) const;    ///< starts to read them
  void write_back(std::string_view bytes) const;  ///< starts to write those that changed
  /// Ends their share of the resident memory. Their contents stay in the file.
  void release(std::string_view bytes) const;

 private:
  const std::string path_;
  int fd_;
  char* data_ = nullptr;
  int64_t size_;
};

/// Bytes that a new file in the directory could take.
int64_t free_disk_bytes(const std::string& directory);

/// Whether two paths are in one file system.
bool share_a_disk(const std::string& a, const std::string& b);

}  // namespace translution
