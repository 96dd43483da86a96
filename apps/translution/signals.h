#pragma once

#include <atomic>
#include <stdexcept>
#include <string>

namespace translution::cli {

/// During the lifetime of an object, SIGINT, SIGTERM and SIGHUP set `stop_requested`; otherwise
/// they end the program at once. A SIGHUP that is ignored, as under nohup, stays ignored.
class StopAtSignals {
 public:
  StopAtSignals();
  ~StopAtSignals();
  StopAtSignals(const StopAtSignals&) = delete;
  StopAtSignals& operator=(const StopAtSignals&) = delete;

 private:
  static constexpr int kCount = 3;
  void (*before_[kCount])(int);
};

/// A closed pipe no longer ends the program. Output into it is lost, and the work continues.
void ignore_closed_pipes();

const std::atomic<bool>& stop_requested();
/// The last of these signals; SIGTERM if there was none.
int stop_signal();

/// Thrown after work was saved and stopped, by such a signal or by a process that belongs to it.
class Stopped : public std::runtime_error {
 public:
  /// With the exit code of the last signal as shells count: 130 after SIGINT, 143 after SIGTERM,
  /// 129 after SIGHUP.
  explicit Stopped(const std::string& message);
  /// An empty message is not printed.
  Stopped(const std::string& message, int exit_code);
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace translution::cli
