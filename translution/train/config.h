#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/settings.h"

namespace translution {

/// The settings of a TOML file, `name = value`, in sections or without. Values are text, numbers,
/// true or false, and lists of these. A name that is not in `known` stops with the nearest one.
TRANSLUTION_API std::map<std::string, std::string> parse_config(
    std::string_view toml, const std::string& path, const std::vector<std::string>& known);
TRANSLUTION_API std::map<std::string, std::string> read_config(
    const std::string& path, const std::vector<std::string>& known);

/// A TOML file that reads back as the same settings: comment lines, then sections.
struct ConfigSection {
  std::string title;
  SettingTexts texts;
};
TRANSLUTION_API std::string format_config(const std::vector<std::string>& comments,
                                          const std::vector<ConfigSection>& sections);

}  // namespace translution
