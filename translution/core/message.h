#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace translution::detail {

/// Quotes `text` for a message: control characters become '?', and text beyond 60 bytes is cut.
inline std::string in_quotes(std::string_view text) {
  size_t most = 60;
  while (most > 56 && most < text.size() && (text[most] & 0xC0) == 0x80)
    --most;  // do not cut UTF-8
  std::string result(text.substr(0, most));
  for (char& letter : result)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  return "'" + result + (text.size() > most ? "'…" : "'");
}

/// Calls `work` and returns its result. Prefixes the message of a std::runtime_error with `where`.
template <typename Work>
auto locate_errors(const std::string& where, const Work& work) {
  try {
    return work();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(where + error.what());
  }
}

}  // namespace translution::detail
