#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace translution::detail {

/// Formats the arguments with operator<< and concatenates them.
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

/// The same for errors that are not the caller's, such as a broken file: throws std::runtime_error.
template <typename... Args>
void ensure(bool ok, const Args&... message) {
  if (!ok) throw std::runtime_error(join(message...));
}

/// Formats a grid or a shape: "7x7" for {7, 7}.
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
