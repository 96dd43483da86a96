#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/settings.h"

namespace translution {

/// Parses the settings of a TOML file: `name = value`, with or without sections. A value is text, a
/// number, true or false, or a list of these. Throws at a name that is not in `known` and suggests
/// the nearest one.
TRANSLUTION_API std::map<std::string, std::string> parse_config(
    std::string_view toml, const std::string& path, const std::vector<std::string>& known);
TRANSLUTION_API std::map<std::string, std::string> read_config(
    const std::string& path, const std::vector<std::string>& known);

/// A section of a TOML file.
struct ConfigSection {
  std::string title;
  SettingTexts texts;
};
/// A TOML file, comment lines first; parse_config reads the same settings back.
TRANSLUTION_API std::string format_config(const std::vector<std::string>& comments,
                                          const std::vector<ConfigSection>& sections);

}  // namespace translution
