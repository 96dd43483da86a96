#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace translution::detail {

/// Joins its arguments into one string, as they would be printed.
template <typename... Args>
std::string join(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

/// Throws std::invalid_argument with the joined message unless `ok`.
template <typename... Args>
void require(bool ok, const Args&... message) {
  if (!ok) throw std::invalid_argument(join(message...));
}

/// The same for what the world did wrong, such as a file: throws std::runtime_error.
template <typename... Args>
void ensure(bool ok, const Args&... message) {
  if (!ok) throw std::runtime_error(join(message...));
}

/// "7x7" for {7, 7}: how a grid or a shape is written in messages.
template <typename Sizes>
std::string times(const Sizes& sizes) {
  std::ostringstream out;
  const char* separator = "";
  for (const auto& size : sizes) {
    out << separator << size;
    separator = "x";
  }
  return out.str();
}

}  // namespace translution::detail
