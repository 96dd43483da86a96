#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace translution::detail {

/// 'text' for a message: on one line whatever it holds, and cut where it is long.
inline std::string in_quotes(std::string_view text) {
  size_t most = 60;
  while (most > 56 && most < text.size() && (text[most] & 0xC0) == 0x80) --most;  // whole letters
  std::string result(text.substr(0, most));
  for (char& letter : result)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  return "'" + result + (text.size() > most ? "'…" : "'");
}

/// What `work` returns; a std::runtime_error out of it gets `where` in front of its message.
template <typename Work>
auto locate_errors(const std::string& where, const Work& work) {
  try {
    return work();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(where + error.what());
  }
}

}  // namespace translution::detail
