#pragma once

#include <string>

namespace translution::serve {

/// A file of the page, built into the program.
struct Asset {
  const char *path, *type;
  const char* text;
};

/// Null if there is no such file.
const Asset* find_asset(const std::string& path);

}  // namespace translution::serve
