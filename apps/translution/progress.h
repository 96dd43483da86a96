#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace translution::cli {

/// Where progress is shown.
struct Display {
  std::function<double()> seconds;  ///< a monotonic clock
  std::function<int()> columns;     ///< current width of the terminal; 0: a file
};

/// The display of a stream: a terminal with its width, or a file.
Display display_of(std::FILE* stream);

/// Shows the progress of work. A terminal has one line, redrawn at most ten times a second. A file
/// gets a new line for every tenth of the work, at most one in 30 seconds.
class Progress {
 public:
  Progress(int64_t total, std::FILE* stream);
  Progress(int64_t total, std::FILE* stream, Display display);
  /// Ends the line on the terminal, even if the work has failed.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `text` has parts separated by two spaces, such as "loss 0.31  1,840 samples/s". If the line is
  /// too short, the last parts are left out. The first call starts the clock; its `done` may be
  /// above 0.
  void update(int64_t done, const std::string& text);
  /// Prints a line above the bar.
  void message(const std::string& line);
  /// Shows the last state and the time since the first update. Later updates do nothing.
  void finish();

 private:
  void measure_rate(double now);
  int64_t tenths() const { return 10 * done_ / total_; }
  std::string time_left() const;
  std::string line(int columns, const std::string& time) const;
  void show(const std::string& time, bool last = false);

  const int64_t total_;
  std::FILE* const stream_;
  const Display display_;
  int64_t done_ = 0;
  std::string text_;
  double started_ = -1;  // time of the first update; -1: none yet
  double measured_ = 0;  // time of the last measurement of the rate, and `done` at that time
  int64_t measured_done_ = 0;
  double rate_ = 0;      // per second; 0: unknown
  double shown_ = -1e9;  // time of the last drawing
  int64_t shown_tenths_ = 0;
  bool drawn_ = false;  // the terminal shows an unfinished line
  bool finished_ = false;
};

/// "45 s", "3 min 05 s", "25 min", "2 h 05 min" or "3 d 04 h".
std::string duration_text(double seconds);

}  // namespace translution::cli
