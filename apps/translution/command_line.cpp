#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "translution/core/error.h"

namespace translution::cli {

using namespace detail;

namespace {

// --------------------------------------------------------------------------------- requirements

// One of these must be given.
using Requirement = std::vector<const CLI::Option*>;

// CLI11's own required() cannot express "one of", and is checked before unknown options are
// reported.
class CommandApp : public CLI::App {
 public:
  CommandApp(const char* name, const char* description, CLI::App* parent)
      : App(description, name, parent) {}

  std::vector<Requirement> requirements;
};

std::vector<Requirement> requirements_of(const CLI::App& app) {
  const auto* command = dynamic_cast<const CommandApp*>(&app);
  return command == nullptr ? std::vector<Requirement>() : command->requirements;
}

// As in a call: "--out DIR", "--dry-run", "FILE".
std::string call_text(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(/*positional=*/true);
  const std::string type = option.get_type_name();  // empty for a flag
  return option.get_name() + (type.empty() ? "" : " ") + type;
}

std::string call_text(const Requirement& requirement, const char* separator) {
  std::string text;
  for (const auto* option : requirement)
    text += (text.empty() ? "" : separator) + call_text(*option);
  return text;
}

void check_requirements(const CLI::App& app) {
  for (const auto& requirement : requirements_of(app)) {
    const bool met = std::any_of(requirement.begin(), requirement.end(),
                                 [](const CLI::Option* option) { return option->count() > 0; });
    require(met, call_text(requirement, " or "), " is missing; see ", full_name(app), " --help");
  }
}

// ----------------------------------------------------------------------------------------- help

// Behind the name of a command in the usage line: " FILE... --out DIR [OPTIONS]".
std::string usage_of(const CLI::App& app) {
  std::string arguments = app.get_subcommands({}).empty() ? "" : " COMMAND", options;
  for (const auto& requirement : requirements_of(app)) {
    const auto text = call_text(requirement, " | ");
    if (requirement.front()->get_positional())
      arguments += " " + text + (requirement.front()->get_expected_max() > 1 ? "..." : "");
    else
      options += requirement.size() == 1 ? " " + text : " (" + text + ")";
  }
  return arguments + options + " [OPTIONS]";
}

std::string wrapped(const std::string& text, size_t columns) {
  std::istringstream words(text);
  std::string lines;
  size_t used = 0;  // columns of the last line
  for (std::string word; words >> word; used += word.size()) {
    const bool fits = used + 1 + word.size() <= columns;
    if (used > 0) lines += fits ? ' ' : '\n';
    used = used > 0 && fits ? used + 1 : 0;
    lines += word;
  }
  return lines;
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(size_t columns) : columns_(columns) { column_width(kFirstColumn); }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const auto arguments =
        app->get_options([](const CLI::Option* o) { return o->get_positional(); });
    std::string text = app->get_description() + "\n\nUsage: " + name + usage_of(*app) + "\n";
    if (!arguments.empty()) text += make_group("Arguments", true, arguments);
    text += make_subcommands(app, CLI::AppFormatMode::Normal);
    auto groups = app->get_groups();
    std::stable_partition(groups.begin(), groups.end(),
                          [](const std::string& group) { return group != "Options"; });
    for (const auto& group : groups) text += make_group(group, false, options_of(app, group));
    return text + "\n" + app->get_footer() + "\n";
  }

  // Arguments have no placeholder after their name.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? "" : Formatter::make_option_opts(option);
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const auto text = option->get_description();
    return columns_ > kFirstColumn ? wrapped(text, columns_ - kFirstColumn) : text;
  }

 private:
  static std::vector<const CLI::Option*> options_of(const CLI::App* app, const std::string& group) {
    return app->get_options(
        [&](const CLI::Option* o) { return o->get_group() == group && !o->get_positional(); });
  }

  static constexpr size_t kFirstColumn = 34;  // of descriptions
  const size_t columns_;
};

}  // namespace

bool Option::given() const { return option_->count() > 0; }
std::string Option::name() const { return option_->get_name(); }
std::string Option::text() const { return option_->results().front(); }

Command Command::add_command(const char* name, const char* description) {
  auto* command = app_->add_subcommand(std::make_shared<CommandApp>(name, description, app_))
                      ->group("Commands");
  return Command(*command);
}

void Command::takes_a_command() { app_->require_subcommand(0, 1); }

Option Command::option(const std::string& name, const std::string& type, const std::string& help,
                       const char* group) {
  return Option(app_->add_option(name)->type_name(type)->description(help)->group(group));
}

void Command::option(const std::string& name, const std::string& type,
                     std::vector<std::string>& texts, const std::string& help) {
  app_->add_option(name, texts, help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

Option Command::flag(const char* name, bool& value, const char* help, const char* group) {
  return Option(app_->add_flag(name, value, help)->disable_flag_override()->group(group));
}

void Command::argument(const char* name, std::string& text, const char* help) {
  require_one_of({Option(app_->add_option(name, text, help))});
}

void Command::argument(const char* name, std::vector<std::string>& texts, const char* help) {
  require_one_of({Option(app_->add_option(name, texts, help))});
}

void Command::require_one_of(const std::vector<Option>& options) {
  Requirement requirement;
  for (const auto& option : options) requirement.push_back(option.option_);
  dynamic_cast<CommandApp&>(*app_).requirements.push_back(requirement);
}

void Command::footer(const char* text) { app_->footer(text); }

void Command::run(std::function<void()> function) {
  app_->callback([app = app_, work = std::move(function)] {
    check_requirements(*app);
    work();
  });
}

std::vector<const CLI::App*> all_commands(const CLI::App& app) {
  std::vector<const CLI::App*> all{&app};
  for (const auto* command : app.get_subcommands({}))
    for (const auto* below : all_commands(*command)) all.push_back(below);
  return all;
}

std::string full_name(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

std::shared_ptr<CLI::FormatterBase> help_formatter(size_t columns) {
  return std::make_shared<HelpFormatter>(columns);
}

}  // namespace translution::cli
