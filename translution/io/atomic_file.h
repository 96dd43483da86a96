#pragma once

#include <string>
#include <string_view>

#include "translution/core/export.h"

namespace translution {

/// A file that is never half-written: the bytes go to another file in the same directory, which
/// takes the place of `path` in `commit`, when they are on the disk. Without `commit` nothing
/// remains. Symbolic links are followed, and a file that is replaced keeps its mode. A device, pipe
/// or socket is never replaced: the bytes are written to it as they come. An error is one line with
/// the path, the reason and what to do.
class TRANSLUTION_API AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  /// After it the file is at its place even if the machine loses power.
  void commit();

 private:
  template <typename Step>
  void guard(const Step& step) const;
  bool is_direct() const { return temporary_.empty(); }  // no regular file: nothing to replace

  const std::string path_;
  std::string target_, temporary_;  // the file behind the links; what will replace it
  int fd_ = -1;
};

TRANSLUTION_API void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace translution
