#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "commands.h"

namespace translution::cli {
namespace {

constexpr const char* kManualExamples =
    "Example:\n"
    "  translution manual | man -l -";

// What roff would read as a command or a hyphen, as plain text.
std::string plain(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    const bool line_start = result.empty() || result.back() == '\n';
    if (line_start && (letter == '.' || letter == '\'')) result += "\\&";
    if (letter == '\\')
      result += "\\e";
    else if (letter == '-')
      result += "\\-";
    else
      result += letter;
  }
  return result;
}

std::string option_item(const CLI::Option& option) {
  const CLI::Formatter formatter;
  const bool positional = option.get_positional();
  const std::string name = formatter.make_option_name(&option, positional);
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", plain(name),
                     plain(formatter.make_option_opts(&option)), plain(option.get_description()));
}

std::string option_list(const CLI::App& app) {
  std::string text;
  for (const auto& group : app.get_groups()) {
    const auto options =
        app.get_options([&](const CLI::Option* option) { return option->get_group() == group; });
    if (!options.empty()) text += fmt::format(".PP\n\\fI{}\\fR\n", plain(group));
    for (const auto* option : options) text += option_item(*option);
  }
  return text;
}

std::string footer_of(const CLI::App& app) {
  return fmt::format(".PP\n.nf\n{}\n.fi\n", plain(app.get_footer()));
}

void add_commands(const CLI::App& app, const std::string& path, std::string& text) {
  for (const auto* command : app.get_subcommands({})) {
    const std::string name = path + " " + command->get_name();
    text += fmt::format(".SS \"{}\"\n{}\n", plain(name + arguments_of(*command)),
                        plain(command->get_description()));
    text += option_list(*command) + footer_of(*command);
    add_commands(*command, name, text);
  }
}

std::string manual(const CLI::App& program) {
  const std::string name = program.get_name(), description = program.get_description();
  std::string text = fmt::format(
      ".TH TRANSLUTION 1 \"\" \"{}\" \"User Commands\"\n"
      ".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n\\fB{}\\fR{}\n.SH OPTIONS\n{}.SH COMMANDS\n",
      plain(program.version()), name, plain(description), name, plain(arguments_of(program)),
      option_list(program));
  add_commands(program, name, text);
  text +=
      ".SH EXIT STATUS\n0 if all went well, 1 if the work failed, 2 if the call makes no sense.\n";
  return text + ".SH EXAMPLES\n" + footer_of(program);
}

}  // namespace

void add_manual(Command program) {
  auto command = program.add_command("manual", "All of this help as a page for man");
  command.footer(kManualExamples);
  command.run([program] { fmt::print("{}", manual(program.app())); });
}

}  // namespace translution::cli
