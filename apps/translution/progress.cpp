#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "table.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr double kRedraw = 0.1;  // seconds between drawings on a terminal
constexpr double kPlain = 30;    // seconds between lines in a file
constexpr size_t kShortBar = 8, kLongBar = 30;
constexpr const char* kClear = "\r\x1b[K";

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Replaces control characters, which a terminal would interpret, by spaces.
std::string without_controls(std::string text) {
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = ' ';
  return text;
}

std::string bar(double share, size_t width) {
  const auto full = static_cast<size_t>(share * width);
  return "[" + std::string(full, '=') + std::string(width - full, ' ') + "] ";
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e10)) return "?";
  const auto rounded = static_cast<int64_t>(std::lround(seconds));
  const int64_t minutes = rounded / 60, hours = rounded / 3600;
  if (minutes == 0) return fmt::format("{} s", rounded);
  if (minutes < 10) return fmt::format("{} min {:02} s", minutes, rounded % 60);
  if (hours == 0) return fmt::format("{} min", minutes);
  if (hours < 24) return fmt::format("{} h {:02} min", hours, minutes % 60);
  return fmt::format("{} d {:02} h", hours / 24, hours % 24);
}

Display display_of(std::FILE* stream) {
  const int fd = fileno(stream);
  const char* terminal = std::getenv("TERM");
  if (!isatty(fd) || (terminal != nullptr && std::string(terminal) == "dumb"))
    return {steady_seconds, [] { return 0; }};
  return {steady_seconds, [fd] {
            winsize size{};
            return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? int{size.ws_col} : 80;
          }};
}

Progress::Progress(int64_t total, std::FILE* stream)
    : Progress(total, stream, display_of(stream)) {}

Progress::Progress(int64_t total, std::FILE* stream, Display display)
    : total_(std::max<int64_t>(total, 1)), stream_(stream), display_(std::move(display)) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\n", stream_);
}

// A weighted mean of the rate since the first update: the later half of the time has a weight of
// three quarters. It follows a change of speed, and includes pauses, such as evaluations.
void Progress::measure_rate(double now) {
  if (done_ <= measured_done_ || now <= measured_) return;
  const double rate = (done_ - measured_done_) / (now - measured_);
  const double older = (measured_ - started_) / (now - started_);
  rate_ = rate + (rate_ - rate) * older * older;
  measured_ = now;
  measured_done_ = done_;
}

std::string Progress::time_left() const {
  return rate_ > 0 ? "  " + duration_text((total_ - done_) / rate_) + " left" : "";
}

// Percentage, count and time have priority, then the parts of the text that fit. The bar takes the
// remaining columns.
std::string Progress::line(int columns, const std::string& time) const {
  // Some terminals wrap at the last column.
  const size_t limit = columns > 0 ? columns - 1 : SIZE_MAX;
  const double share = std::clamp(static_cast<double>(done_) / total_, 0.0, 1.0);
  const std::string total = grouped(total_);
  std::string line = fmt::format("{:3.0f} %  {:>{}}/{}", std::floor(100 * share), grouped(done_),
                                 total.size(), total);
  if (line.size() + time.size() > limit) return line.substr(0, limit);
  std::string text = text_.empty() ? "" : "  " + text_;
  while (line.size() + text.size() + time.size() > limit)
    text.resize(std::min(text.rfind("  "), text.size() - 1));
  line += text + time;
  if (columns == 0 || limit - line.size() < kShortBar + 3) return line;
  return bar(share, std::min(kLongBar, limit - line.size() - 3)) + line;
}

void Progress::show(const std::string& time, bool last) {
  const int columns = display_.columns();
  const bool terminal = columns > 0;
  drawn_ = terminal && !last;
  std::fputs(((terminal ? kClear : "") + line(columns, time) + (drawn_ ? "" : "\n")).c_str(),
             stream_);
  std::fflush(stream_);
  shown_ = display_.seconds();
  shown_tenths_ = tenths();
}

void Progress::update(int64_t done, const std::string& text) {
  if (finished_) return;
  const double now = display_.seconds();
  const bool terminal = display_.columns() > 0;
  done_ = done;
  text_ = without_controls(text);
  if (started_ < 0) {
    started_ = measured_ = now, measured_done_ = done;
    if (!terminal) shown_ = now, shown_tenths_ = tenths();
  }
  measure_rate(now);
  if (terminal ? now - shown_ >= kRedraw : now - shown_ >= kPlain && tenths() > shown_tenths_)
    show(time_left());
}

void Progress::message(const std::string& line) {
  std::fputs(((drawn_ ? kClear : "") + without_controls(line) + "\n").c_str(), stream_);
  if (drawn_) show(time_left());
  std::fflush(stream_);
}

void Progress::finish() {
  if (finished_ || started_ < 0) return;
  finished_ = true;
  show("  in " + duration_text(display_.seconds() - started_), /*last=*/true);
}

}  // namespace translution::cli
