#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

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

// The words that may follow a command: its options, and the commands below it.
std::string words_of(const CLI::App& app) {
  std::string words;
  for (const auto* command : app.get_subcommands({})) words += command->get_name() + " ";
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) words += "--" + name + " ";
  return words;
}

using Cases = std::vector<std::pair<std::string, std::string>>;  // what was typed, what may follow

// Every command with its words; "bench op" for those below another.
void add_commands(const CLI::App& app, const std::string& path, Cases& cases) {
  for (const auto* command : app.get_subcommands({})) {
    const std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
    cases.emplace_back(name, words_of(*command));
    add_commands(*command, name, cases);
  }
}

std::string spaced(const std::vector<std::string>& names) {
  std::string words;
  for (const auto& name : names) words += name + " ";
  return words;
}

// What may stand behind an option: the choices that its help shows, as in "on|off". Empty: files.
std::string values_of(const CLI::Option& option) {
  const std::string name = option.get_lnames().front();
  if (name == "method" || name == "rest") return spaced(names_of(kMethods));
  if (name == "model") return spaced(model_names());
  std::string values = option.get_type_name();
  const bool words = values.find_first_not_of("abcdefghijklmnopqrstuvwxyz_|,") == std::string::npos;
  if (!words || name == "roles") return "";
  std::replace(values.begin(), values.end(), '|', ' ');
  return values;
}

// Every option that takes a value, once.
void add_values(const CLI::App& app, Cases& cases) {
  for (const auto* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_type_size() == 0) continue;
    const std::string name = "--" + option->get_lnames().front();
    const bool known = std::any_of(cases.begin(), cases.end(),
                                   [&](const auto& other) { return other.first == name; });
    if (!known) cases.emplace_back(name, values_of(*option));
  }
  for (const auto* command : app.get_subcommands({})) add_values(*command, cases);
}

// case "$NAME" in "typed") words="what may follow" ;; … esac
std::string choose(const std::string& name, const Cases& cases, const std::string& otherwise) {
  std::string text = "  case \"$" + name + "\" in\n";
  for (const auto& [typed, words] : cases)
    text += fmt::format("    \"{}\") words=\"{}\" ;;\n", typed, words);
  return text + "    *) " + otherwise + " ;;\n  esac\n";
}

// Leaves the longest command among the words before the cursor in $command.
std::string find_command(const std::string& words_before, const Cases& commands) {
  std::string known;
  for (const auto& [name, words] : commands) known += (known.empty() ? "\"" : "|\"") + name + "\"";
  return "  for word in " + words_before +
         "; do\n    case \"${command:+$command }$word\" in\n      " + known +
         ") command=\"${command:+$command }$word\" ;;\n      *) break ;;\n    esac\n  done\n";
}

std::string script(const CLI::App& program, Shell shell) {
  Cases commands, values;
  add_commands(program, "", commands);
  add_values(program, values);
  const std::string find = choose(
      "before", values, "\n" + choose("command", commands, "words=\"" + words_of(program) + "\""));
  if (shell == Shell::bash)
    return "_translution() {\n  local words= command= word before=${COMP_WORDS[COMP_CWORD-1]}\n" +
           find_command("\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"", commands) + find +
           "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
           "  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "
           "\"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
           "complete -o filenames -F _translution translution\n";
  return "#compdef translution\n_translution() {\n  local command= word "
         "before=${words[CURRENT-1]}\n"
         "  local -a typed; typed=(\"${(@)words[2,CURRENT-1]}\")\n" +
         find_command("$typed", commands) + "  local words=\n" + find +
         "  compadd -- ${=words} || _files\n}\n_translution \"$@\"\n";
}

}  // namespace

void add_completion(Command program) {
  auto command = program.add_command("completion", "Completion for a shell, as a script");
  const auto shell = std::make_shared<std::string>();
  command.argument("SHELL", *shell, "bash or zsh");
  command.footer(kCompletionExamples);
  command.run([program, shell] {
    fmt::print("{}", script(program.app(), parse_name("shell", kShells, *shell)));
  });
}

}  // namespace translution::cli
