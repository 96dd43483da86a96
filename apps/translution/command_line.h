#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

// CLI11 adds ten seconds or more to the compilation of every file that includes it. Commands use
// these classes instead.
namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace translution::cli {

/// An option of a command. Its value is text.
class Option {
 public:
  Option() = default;
  explicit Option(const CLI::Option* option) : option_(option) {}

  bool given() const;        ///< on the command line
  std::string name() const;  ///< with dashes
  std::string text() const;  ///< the value given; only if given()

 private:
  friend class Command;
  const CLI::Option* option_ = nullptr;
};

/// A command, or the program itself. A handle: copies refer to the same command.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  CLI::App& app() const { return *app_; }

  Command add_command(const char* name, const char* description);
  /// A call names one of the commands added to this one, as in "bench op".
  void takes_a_command();

  /// `type` is the placeholder of the value in the help: "N", "on|off".
  Option option(const std::string& name, const std::string& type, const std::string& help,
                const char* group = "Options");
  /// An option that may be given several times.
  void option(const std::string& name, const std::string& type, std::vector<std::string>& texts,
              const std::string& help);
  Option flag(const char* name, bool& value, const char* help, const char* group = "Options");
  /// Adds a required argument without dashes. Arguments are read in the order in which they are
  /// added. A vector takes one or more.
  void argument(const char* name, std::string& text, const char* help);
  void argument(const char* name, std::vector<std::string>& texts, const char* help);
  /// A call must have at least one of these options. The usage line shows them.
  void require_one_of(const std::vector<Option>& options);

  void footer(const char* text);
  /// Sets the function that does the work. A call without a required argument or option is refused
  /// before `function` is called.
  void run(std::function<void()> function);

 private:
  CLI::App* app_;
};

/// The command and all below it, outermost first.
std::vector<const CLI::App*> all_commands(const CLI::App& app);
/// The name of a command as in a call: "translution bench op".
std::string full_name(const CLI::App& app);

/// Formats the help of a command: description, usage, arguments, commands, options by group with
/// "Options" last, footer. Descriptions are wrapped to lines of at most `columns`; 0: not wrapped.
std::shared_ptr<CLI::FormatterBase> help_formatter(size_t columns);

}  // namespace translution::cli
