#pragma once

#include <cstdio>
#include <string>

namespace translution::cli {

/// To standard error, such as a warning about one file. Not with fmt, which throws where standard
/// error cannot be written.
inline void print_line(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

}  // namespace translution::cli
