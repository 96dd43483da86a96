#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/error.h"

namespace translution {

/// The words of a line, separated by spaces and tabs.
std::vector<std::string_view> split_words(std::string_view line);

/// The number that a word is; nothing if it is none or out of range. A leading + is accepted.
template <typename Number>
std::optional<Number> word_number(std::string_view word) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  Number number{};
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || stop != word.data() + word.size()) return std::nullopt;
  return number;
}

/// A place in a file, for messages: "path:12: " or "path: byte 12: ".
struct FilePlace {
  const std::string& name;
  const char* before;  ///< the number
  int64_t number;
};
inline std::ostream& operator<<(std::ostream& out, const FilePlace& place) {
  return out << place.name << place.before << place.number << ": ";
}

/// Throws std::runtime_error with the place. Unlike with `ensure`, arguments are evaluated only if
/// there is something to report.
template <typename... Message>
[[noreturn]] void refuse_file(const FilePlace& place, const Message&... message) {
  throw std::runtime_error(detail::join(place, message...));
}

/// Reads a text line by line, without line ends. `text` and `name` must outlive it.
class TextLines {
 public:
  TextLines(std::string_view text, const std::string& name, int64_t lines_before = 0)
      : text_(text), line_(lines_before), name_(name) {}

  /// The next line; false at the end.
  bool next_line();
  /// The next line with words; false at the end.
  bool next();
  /// The same; what follows a '#' is a comment.
  bool next_uncommented();

  std::string_view line() const { return text_of_line_; }
  const std::vector<std::string_view>& words() const { return words_; }
  size_t left() const { return text_.size() - at_; }  ///< bytes
  FilePlace place() const { return {name_, ":", line_}; }

 private:
  const std::string_view text_;
  size_t at_ = 0;
  int64_t line_;
  const std::string& name_;
  std::string_view text_of_line_;
  std::vector<std::string_view> words_;
};

}  // namespace translution
