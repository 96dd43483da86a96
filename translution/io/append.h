#pragma once

#include <string>
#include <string_view>

namespace translution {

/// A file that is only added to. What was written outlives the process, what was synced also a
/// power cut. Every failure is one line with the path and the reason.
class AppendFile {
 public:
  enum class Existing { keep, discard };

  explicit AppendFile(std::string path, Existing existing = Existing::keep);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void write(std::string_view bytes);
  void sync();

 private:
  std::string path_;
  int fd_;
};

}  // namespace translution
