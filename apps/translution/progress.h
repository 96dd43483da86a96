#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace translution::cli {

/// Where progress is shown.
struct Display {
  std::function<double()> seconds;  ///< a clock that never goes back
  std::function<int()> columns;     ///< of the terminal, asked whenever it is drawn on; 0: a file
  bool blocks = false;              ///< draw the bar with block characters (UTF-8)
};

/// The display behind a stream: a terminal with its width, or a file.
Display display_of(std::FILE* stream);

/// How far some work is. A terminal has one line that is rewritten in place, at most ten times a
/// second; elsewhere a plain line follows where another tenth is done and half a minute has passed.
class Progress {
 public:
  Progress(int64_t total, std::FILE* stream);
  Progress(int64_t total, std::FILE* stream, Display display);
  /// Leaves the terminal with a line of its own, also when work is given up.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `text` says how it goes: parts with two spaces between them, such as "loss 0.31  1,840
  /// samples/s", of which the last are left out where the line is too short. The first call tells
  /// where the work starts, which need not be at 0.
  void update(int64_t done, const std::string& text);
  /// A line of its own, above the bar.
  void message(const std::string& line);
  /// Shows the last state and the time taken. Later calls do nothing.
  void finish();

 private:
  double remaining() const;
  std::string line(int columns, const std::string& time) const;
  void measure();
  void draw();
  void print_line(const std::string& time);

  const int64_t total_;
  std::FILE* const stream_;
  const Display display_;
  const double start_;
  int64_t done_ = 0;
  std::string text_;
  double begun_ = 0;     // when work was first heard of: what came before says nothing of its pace
  double measured_ = 0;  // when the rate was last looked at, and what was done then
  int64_t measured_done_ = 0;
  double rate_ = 0;      // smoothed, per second; 0: not known
  double shown_ = -1e9;  // when something was last drawn
  int64_t shown_tenths_ = 0;
  bool started_ = false, drawn_ = false, finished_ = false;
};

/// "45 s", "3 min 05 s", "25 min", "2 h 05 min" or "3 d 04 h".
std::string duration_text(double seconds);

}  // namespace translution::cli
