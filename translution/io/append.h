#pragma once

#include <string>
#include <string_view>

namespace translution {

/// A file opened for appending. Written bytes survive a crash of the process; synced bytes also
/// survive a power loss. Throws std::runtime_error with the path and the reason.
class AppendFile {
 public:
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::string& path() const { return path_; }
  void write(std::string_view bytes);
  void sync();

 private:
  std::string path_;
  int fd_;
};

}  // namespace translution
