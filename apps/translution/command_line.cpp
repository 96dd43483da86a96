#include "command_line.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace translution::cli {

bool Option::given() const { return option_->count() > 0; }
std::string Option::name() const { return option_->get_name(); }
std::string Option::text() const { return option_->results().front(); }

Command Command::add_command(const char* name, const char* description) {
  auto* command = app_->add_subcommand(name, description);
  command->group("Commands");
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

void Command::flag(const char* name, bool& value, const char* help, const char* group) {
  app_->add_flag(name, value, help)->disable_flag_override()->group(group);
}

void Command::argument(const char* name, std::string& text, const char* help) {
  app_->add_option(name, text, help)->required();
}

void Command::argument(const char* name, std::vector<std::string>& texts, const char* help,
                       bool required) {
  auto* option = app_->add_option(name, texts, help)->required(required);
  if (!required) option->type_name("");
}

void Command::footer(const char* text) { app_->footer(text); }

void Command::run(std::function<void()> function) { app_->callback(std::move(function)); }

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

}  // namespace translution::cli
