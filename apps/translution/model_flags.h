#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_line.h"
#include "translution/models/settings.h"

namespace translution::cli {

/// The value of an option on the command line. Refuses another option in its place.
SettingValue value_of(const Option& option);

/// The value of the option, 1 to `most`; `fallback` if it is not given.
int64_t number_or(int64_t fallback, const Option& option, int64_t most);

/// Options of a command that are made from settings.
class SettingFlags {
 public:
  explicit SettingFlags(Command command) : command_(command) {}

  Option add(const std::string& name, const std::string& placeholder, const std::string& help,
             const char* group);
  template <typename Options>
  void add(const Settings<Options>& groups) {
    for (const auto& group : groups)
      for (const auto& setting : group.settings)
        add(setting.name, setting.placeholder, setting.help_text(), group.title);
  }

  /// Name, without dashes, and value of each option on the command line.
  std::map<std::string, std::string> given() const;
  /// All names, without dashes.
  std::vector<std::string> names() const;

 private:
  Command command_;
  std::vector<std::pair<std::string, Option>> options_;
};

/// The same settings with another default in their help, such as "the run's". Without names: all.
template <typename Options>
Settings<Options> with_default(const char* text, Settings<Options> groups,
                               const std::vector<std::string>& names = {}) {
  for (auto& group : groups)
    for (auto& setting : group.settings)
      if (names.empty() || std::find(names.begin(), names.end(), setting.name) != names.end())
        setting.unset = text;
  return groups;
}

/// --precision of a command.
class PrecisionFlag {
 public:
  /// `fallback` is the default in the help.
  PrecisionFlag(Command command, const char* fallback);
  std::optional<Precision> read() const;

 private:
  Option option_;
};

/// --device of a command.
class DeviceFlag {
 public:
  explicit DeviceFlag(Command command);
  std::string read() const;  ///< a name for find_device (train/device.h)

 private:
  Option option_;
};

/// The options of a command that choose a method and its variants.
class PositionFlags {
 public:
  explicit PositionFlags(Command command);
  Position read() const;

 private:
  SettingFlags flags_;
};

/// The options of a command that choose a model.
class ModelFlags {
 public:
  explicit ModelFlags(Command command);

  /// The model, checked. Refuses options that its family does not have.
  ModelOptions read() const;
  /// Names, with dashes, of the options on the command line.
  std::vector<std::string> given() const;
  Option model() const { return model_; }  ///< --model

 private:
  SettingFlags flags_;
  Option model_;
};

/// Adds --model and the options of a model. Returns --model. `fallback` is its default in the help.
Option add_model_flags(SettingFlags& flags, const char* fallback = nullptr,
                       const Settings<ModelOptions>& settings = model_settings());

}  // namespace translution::cli
