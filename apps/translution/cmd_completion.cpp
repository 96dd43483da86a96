#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "commands.h"
#include "model_flags.h"
#include "translution/core/error.h"
#include "translution/models/options.h"

namespace translution::cli {
namespace {

constexpr const char* kCompletionExamples =
    "Examples:\n"
    "  translution completion bash > /etc/bash_completion.d/translution\n"
    "  translution completion zsh > \"${fpath[1]}/_translution\"";

enum class Shell { bash, zsh };
constexpr Named<Shell> kShells[] = {{Shell::bash, "bash", ""}, {Shell::zsh, "zsh", ""}};

// The words that may follow a command: its subcommands and options.
std::string choices_of(const CLI::App& app) {
  std::string choices;
  for (const auto* command : app.get_subcommands({})) choices += command->get_name() + " ";
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) choices += "--" + name + " ";
  return choices;
}

std::string spaced(const std::vector<std::string>& names) {
  std::string words;
  for (const auto& name : names) words += name + " ";
  return words;
}

// The words that may follow an option: the choices of its placeholder, as in "on|off". Empty:
// files.
std::string choices_of(const CLI::Option& option) {
  const std::string name = option.get_lnames().front();
  if (name == "method" || name == "rest") return spaced(names_of(kMethods));
  if (name == "from") return "translution authors gpt2 timm";
  if (name == "to") return "translution authors";
  if (name == "model") return spaced(model_names());
  std::string choices = option.get_type_name();
  const bool words =
      choices.find_first_not_of("abcdefghijklmnopqrstuvwxyz_|,") == std::string::npos;
  if (!words || name == "roles") return "";
  std::replace(choices.begin(), choices.end(), '|', ' ');
  return choices;
}

// The cases of a shell's `case` over the words typed so far, with the words that may follow: one
// for each option as the last word, then one for each command, subcommands before their parents.
std::string cases_of(const CLI::App& program) {
  std::map<std::string, std::string> options;
  std::string commands;
  for (const auto* command : all_commands(program)) {
    const std::string words = full_name(*command).substr(program.get_name().size());
    commands.insert(0,
                    fmt::format("    \"{} \"*) choices=\"{}\" ;;\n", words, choices_of(*command)));
    for (const auto* option : command->get_options())
      if (!option->get_lnames().empty() && option->get_type_size() > 0)
        options.emplace(option->get_lnames().front(), choices_of(*option));
  }
  std::string text;
  for (const auto& [name, choices] : options)
    text += fmt::format("    *\" --{} \") choices=\"{}\" ;;\n", name, choices);
  return text + commands;
}

constexpr const char* kBash = R"(_translution() {{
  local choices=
  case " ${{COMP_WORDS[*]:1:COMP_CWORD-1}} " in
{}  esac
  COMPREPLY=($(compgen -W "$choices" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _translution translution
)";

constexpr const char* kZsh = R"(#compdef translution
local choices=
case " ${{words[2,CURRENT-1]}} " in
{}esac
compadd -- ${{=choices}} || _files
)";

}  // namespace

void add_completion(Command program) {
  auto command = program.add_command("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command.argument("SHELL", *shell, "bash or zsh");
  command.footer(kCompletionExamples);
  command.run([program, shell] {
    const auto cases = cases_of(program.app());
    if (parse_name("shell", kShells, *shell) == Shell::bash)
      fmt::print(kBash, cases);
    else
      fmt::print(kZsh, cases);
  });
}

}  // namespace translution::cli
