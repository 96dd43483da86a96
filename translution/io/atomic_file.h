#pragma once

#include <string>
#include <string_view>

#include "translution/core/export.h"

namespace translution {

/// Replaces a file atomically: bytes go to a temporary file in the same directory; commit() syncs
/// it to disk and renames it to `path`. Without commit() the destructor removes it. Follows
/// symbolic links and preserves the mode of the replaced file. A device, pipe or socket is not
/// replaced: bytes are written to it directly. Throws std::runtime_error with the path, the reason
/// and what to do.
class TRANSLUTION_API AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  /// When it returns, the new file survives a power loss.
  void commit();

 private:
  template <typename Step>
  void guard(const Step& step) const;
  bool is_direct() const { return temporary_.empty(); }  // a device, pipe or socket

  const std::string path_;
  std::string target_, temporary_;  // path_ with links resolved; the file that replaces it
  int fd_ = -1;
};

TRANSLUTION_API void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace translution
