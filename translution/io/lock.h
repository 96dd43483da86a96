#pragma once

#include <string>

namespace translution {

/// Holds an exclusive lock on `directory/.lock` for its lifetime. Throws std::runtime_error if
/// another process holds the lock; the message names the process.
class DirectoryLock {
 public:
  static constexpr const char* kFile = "/.lock";  ///< not removed with the lock

  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int fd_;
};

}  // namespace translution
