#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "translution/models/options.h"

namespace translution::cli {

/// What stands behind an option on the command line. Refuses another option in its place.
struct Value {
  explicit Value(const CLI::Option& option);

  int64_t number() const;                             ///< a whole number
  int64_t number(int64_t least, int64_t most) const;  ///< one of that range
  bool on() const;                                    ///< "on" or "off"
  std::vector<int64_t> sides() const;                 ///< "84" or "84x60": two numbers
  std::vector<int64_t> grid() const;                  ///< "160", "7x7", "4x7x7"

  std::string option, text;
};

/// What the option says, 1 to `most`; `fallback` where it does not stand.
int64_t number_or(int64_t fallback, const CLI::Option& option, int64_t most);

/// The options of a command that decide a method and its choices.
class PositionFlags {
 public:
  explicit PositionFlags(CLI::App& command);
  Position read() const;

 private:
  std::vector<const CLI::Option*> options_;
};

/// The options of a command that decide a model.
class ModelFlags {
 public:
  explicit ModelFlags(CLI::App& command);

  /// The model asked for, checked. Refuses options that its family does not have.
  ModelOptions read() const;
  /// The options that stand on the command line.
  std::vector<std::string> given() const;

 private:
  const CLI::Option* model_;
  std::vector<const CLI::Option*> options_;
};

}  // namespace translution::cli
