#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "table.h"

namespace translution::cli {
namespace {

constexpr double kRedraw = 0.1;  // seconds between drawings on a terminal
constexpr double kPlain = 30;    // seconds between plain lines
constexpr int kNarrowest = 20;   // columns below which there is no use in a line
constexpr size_t kShortBar = 8, kLongBar = 30;
constexpr const char* kClear = "\r\x1b[K";

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;  // the next one decides
    std::string locale = value;
    for (char& letter : locale) letter = std::tolower(static_cast<unsigned char>(letter));
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

// What a terminal would take for a command, or two lines, becomes a space.
std::string without_controls(std::string text) {
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = ' ';
  return text;
}

size_t width_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;  // all but continued characters
  });
}

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("  ", begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

// Full blocks, and one of eight widths where it ends.
std::string block_bar(double share, size_t width) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(share * width * 8);
  std::string bar = "▕";
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  return bar + std::string(width - eighths / 8 - (eighths % 8 > 0), ' ') + "▏";
}

std::string plain_bar(double share, size_t width) {
  const auto full = static_cast<size_t>(share * width);
  return "[" + std::string(full, '=') + std::string(width - full, ' ') + "]";
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e10)) return "?";
  const auto whole = static_cast<int64_t>(std::lround(seconds));
  const int64_t minutes = whole / 60, hours = whole / 3600;
  if (minutes == 0) return fmt::format("{} s", whole);
  if (minutes < 10) return fmt::format("{} min {:02} s", minutes, whole % 60);
  if (hours == 0) return fmt::format("{} min", minutes);
  if (hours < 24) return fmt::format("{} h {:02} min", hours, minutes % 60);
  return fmt::format("{} d {:02} h", hours / 24, hours % 24);
}

Display display_of(std::FILE* stream) {
  Display display{steady_seconds, [] { return 0; }, speaks_utf8()};
  const int fd = fileno(stream);
  const char* terminal = std::getenv("TERM");
  if (!isatty(fd) || (terminal != nullptr && std::string(terminal) == "dumb")) return display;
  display.columns = [fd] {
    winsize size{};
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? int{size.ws_col} : 80;
  };
  return display;
}

Progress::Progress(int64_t total, std::FILE* stream)
    : Progress(total, stream, display_of(stream)) {}

Progress::Progress(int64_t total, std::FILE* stream, Display display)
    : total_(std::max<int64_t>(total, 1)),
      stream_(stream),
      display_(std::move(display)),
      start_(display_.seconds()) {}

Progress::~Progress() {
  if (drawn_ && !finished_) std::fputs("\n", stream_);
}

// The rate of the whole time, in which the later half counts for three quarters: what comes now and
// then, such as an evaluation, belongs to the pace.
void Progress::measure() {
  const double now = display_.seconds(), passed = now - measured_;
  if (done_ <= measured_done_ || passed <= 0) return;
  const double rate = (done_ - measured_done_) / passed;
  const double older = (measured_ - begun_) / (now - begun_);
  rate_ = rate + (rate_ - rate) * older * older;
  measured_ = now;
  measured_done_ = done_;
}

double Progress::remaining() const {
  if (rate_ <= 0) return NAN;
  // What has passed since the last measurement is spent already.
  return std::max(0.0, (total_ - measured_done_) / rate_ - (display_.seconds() - measured_));
}

// Percentage, count and time come first; then the parts of the text, while there is room; the bar
// takes what is left.
std::string Progress::line(int columns, const std::string& time) const {
  const double share = std::clamp(static_cast<double>(done_) / total_, 0.0, 1.0);
  const std::string total = grouped(total_);
  const std::string head = fmt::format("{:3.0f} %  {:>{}}/{}", std::floor(100 * share),
                                       grouped(done_), total.size(), total);
  const std::string tail = time.empty() ? "" : "  " + time;
  const size_t limit =
      columns > 0 ? columns - 1 : SIZE_MAX;  // the last column wraps some terminals
  size_t used = width_of(head) + width_of(tail);
  std::string middle;
  for (const auto& part : parts_of(text_)) {
    if (used + 2 + width_of(part) > limit) break;
    middle += "  " + part;
    used += 2 + width_of(part);
  }
  std::string bar;
  if (columns > 0 && used + kShortBar + 3 <= limit) {
    const size_t width = std::min(kLongBar, limit - used - 3);
    bar = (display_.blocks ? block_bar(share, width) : plain_bar(share, width)) + " ";
  }
  return used <= limit ? bar + head + middle + tail : head.substr(0, limit);
}

void Progress::draw() {
  const int columns = display_.columns();
  if (columns < kNarrowest) return;
  const double left = remaining();
  const std::string time = std::isnan(left) ? "" : duration_text(left) + " left";
  std::fputs((kClear + line(columns, time)).c_str(), stream_);
  std::fflush(stream_);
  shown_ = display_.seconds();
  drawn_ = true;
}

void Progress::print_line(const std::string& time) {
  std::fputs((line(0, time) + "\n").c_str(), stream_);
  std::fflush(stream_);
  shown_ = display_.seconds();
  shown_tenths_ = 10 * done_ / total_;
}

void Progress::update(int64_t done, const std::string& text) {
  if (finished_) return;
  done_ = done;
  text_ = without_controls(text);
  const double now = display_.seconds();
  if (!started_) {
    started_ = true;
    begun_ = measured_ = now, measured_done_ = done;
    if (display_.columns() == 0) shown_ = now, shown_tenths_ = 10 * done / total_;
  }
  measure();
  if (display_.columns() > 0) {
    if (now - shown_ >= kRedraw) draw();
  } else if (now - shown_ >= kPlain && 10 * done / total_ > shown_tenths_) {
    print_line(duration_text(remaining()) + " left");
  }
}

void Progress::message(const std::string& line) {
  if (drawn_ && !finished_) std::fputs(kClear, stream_);
  std::fputs((without_controls(line) + "\n").c_str(), stream_);
  if (drawn_ && !finished_) draw();
  std::fflush(stream_);
}

void Progress::finish() {
  if (finished_ || !started_) return;
  finished_ = true;
  const std::string time = "in " + duration_text(display_.seconds() - start_);
  if (drawn_) std::fputs(kClear, stream_);
  std::fputs((line(display_.columns(), time) + "\n").c_str(), stream_);
  std::fflush(stream_);
}

}  // namespace translution::cli
