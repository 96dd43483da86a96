#pragma once

#include <string>

namespace translution {

/// Keeps other processes from changing a directory, as long as it lives: holds `directory/.lock`.
/// One line with the process that is in the way where another one has it.
class DirectoryLock {
 public:
  static constexpr const char* kFile = "/.lock";  ///< stays when the lock goes

  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int fd_;
};

}  // namespace translution
