#include <fmt/format.h>

#include "commands.h"
#include "model_flags.h"
#include "translution/core/error.h"

namespace translution::cli {
namespace {

constexpr const char* kFooter =
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

// "train) words=… ;;" for every command, "bench op" for those below another.
void add_cases(const CLI::App& app, const std::string& path, std::string& cases) {
  for (const auto* command : app.get_subcommands({})) {
    const std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
    cases += fmt::format("    \"{}\") words=\"{}\" ;;\n", name, words_of(*command));
    add_cases(*command, name, cases);
  }
}

// Both shells: the words before the cursor that are no options name the command.
std::string script(const CLI::App& program, Shell shell) {
  std::string cases;
  add_cases(program, "", cases);
  const std::string choose = fmt::format(
      "  case \"$command\" in\n{}    *) words=\"{}\" ;;\n  esac\n", cases, words_of(program));
  if (shell == Shell::bash)
    return "_translution() {\n  local words command= word\n"
           "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
           "    [[ $word == -* || $word == */* ]] && break\n"
           "    command=\"${command:+$command }$word\"\n  done\n" +
           choose +
           "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
           "  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "
           "\"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
           "complete -o filenames -F _translution translution\n";
  return "#compdef translution\n_translution() {\n  local command= word list\n"
         "  local -a before; before=(\"${(@)words[2,CURRENT-1]}\")\n"
         "  for word in $before; do\n"
         "    [[ $word == -* || $word == */* ]] && break\n"
         "    command=\"${command:+$command }$word\"\n  done\n  local words\n" +
         choose + "  compadd -- ${=words} || _files\n}\n_translution \"$@\"\n";
}

}  // namespace

void add_completion(CLI::App& program) {
  auto* command = program.add_subcommand("completion", "Completion for a shell, as a script");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash or zsh")->required();
  command->footer(kFooter);
  command->callback([&program, shell] {
    fmt::print("{}", script(program, parse_name("shell", kShells, *shell)));
  });
}

}  // namespace translution::cli
