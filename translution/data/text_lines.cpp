#include "translution/data/text_lines.h"

#include <algorithm>

namespace translution {

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

bool TextLines::next_line() {
  if (at_ >= text_.size()) return false;
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  text_of_line_ = text_.substr(at_, end - at_);
  at_ = std::min(end + 1, text_.size());
  ++line_;
  if (!text_of_line_.empty() && text_of_line_.back() == '\r') text_of_line_.remove_suffix(1);
  words_ = split_words(text_of_line_);
  return true;
}

bool TextLines::next() {
  while (next_line())
    if (!words_.empty()) return true;
  return false;
}

bool TextLines::next_uncommented() {
  while (next_line()) {
    words_ = split_words(text_of_line_.substr(0, text_of_line_.find('#')));
    if (!words_.empty()) return true;
  }
  return false;
}

}  // namespace translution
