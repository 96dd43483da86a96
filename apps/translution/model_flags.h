#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_line.h"
#include "translution/models/settings.h"

namespace translution::cli {

/// What stands behind an option on the command line. Refuses another option in its place.
SettingValue value_of(const Option& option);

/// What the option says, 1 to `most`; `fallback` where it does not stand.
int64_t number_or(int64_t fallback, const Option& option, int64_t most);

/// The options of a command that stand in tables of settings.
class SettingFlags {
 public:
  explicit SettingFlags(Command command) : command_(command) {}

  void add(const std::string& name, const std::string& placeholder, const std::string& help,
           const char* group);
  template <typename Options>
  void add(const Settings<Options>& groups) {
    for (const auto& group : groups)
      for (const auto& setting : group.settings)
        add(setting.name, setting.placeholder, setting.help_text(), group.title);
  }

  /// Name, without dashes, and text of each option that stands on the command line.
  std::map<std::string, std::string> given() const;
  /// All names, without dashes.
  std::vector<std::string> names() const;

 private:
  Command command_;
  std::vector<std::pair<std::string, Option>> options_;
};

/// --precision of a command.
class PrecisionFlag {
 public:
  /// `fallback` says in the help what counts where it does not stand.
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

/// The options of a command that decide a method and its choices.
class PositionFlags {
 public:
  explicit PositionFlags(Command command);
  Position read() const;

 private:
  SettingFlags flags_;
};

/// The options of a command that decide a model.
class ModelFlags {
 public:
  explicit ModelFlags(Command command);

  /// The model asked for, checked. Refuses options that its family does not have.
  ModelOptions read() const;
  /// The options that stand on the command line.
  std::vector<std::string> given() const;

 private:
  SettingFlags flags_;
};

/// Adds --model and the options of a model.
void add_model_flags(SettingFlags& flags);

}  // namespace translution::cli
