#pragma once

#include <functional>
#include <string>
#include <vector>

// CLI11 costs ten seconds and more in every file that includes it. Commands use these classes
// instead.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace translution::cli {

/// An option of a command. Its value is text.
class Option {
 public:
  Option() = default;
  explicit Option(const CLI::Option* option) : option_(option) {}

  bool given() const;        ///< Does it stand on the command line?
  std::string name() const;  ///< with dashes
  std::string text() const;  ///< the value that was given

 private:
  const CLI::Option* option_ = nullptr;
};

/// A command, or the program itself. Refers to it: copies are the same command.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  CLI::App& app() const { return *app_; }

  Command add_command(const char* name, const char* description);
  /// The commands added to it are chosen from, as in "bench op".
  void takes_a_command();

  Option option(const std::string& name, const std::string& type, const std::string& help,
                const char* group = "Options");
  /// An option that may be given several times.
  void option(const std::string& name, const std::string& type, std::vector<std::string>& texts,
              const std::string& help);
  void flag(const char* name, bool& value, const char* help, const char* group = "Options");
  /// Arguments without dashes, by their order. A vector takes one or more.
  void argument(const char* name, std::string& text, const char* help);
  void argument(const char* name, std::vector<std::string>& texts, const char* help,
                bool required = true);

  void footer(const char* text);
  void run(std::function<void()> function);

 private:
  CLI::App* app_;
};

/// The command and all below it, outermost first.
std::vector<const CLI::App*> all_commands(const CLI::App& app);
/// As it is called: "translution bench op".
std::string full_name(const CLI::App& app);

}  // namespace translution::cli
