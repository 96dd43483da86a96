#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "translution/models/options.h"

namespace translution::cli {

/// What stands behind an option on the command line. Refuses another option in its place.
struct Value {
  explicit Value(const CLI::Option& option);

  int64_t number() const;              ///< a whole number
  bool on() const;                     ///< "on" or "off"
  std::vector<int64_t> sides() const;  ///< "84" or "84x60"

  std::string option, text;
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
  std::vector<const CLI::Option*> options_;  // --model, then all of the groups
};

}  // namespace translution::cli
