#pragma once

#include <cstdio>
#include <string>

namespace translution::cli {

/// Prints a line, such as a warning about one file, to standard error. Not with fmt, which throws
/// if standard error cannot be written.
inline void print_line(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

}  // namespace translution::cli
