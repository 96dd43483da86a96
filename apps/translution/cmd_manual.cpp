#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <regex>

#include "commands.h"

namespace translution::cli {
namespace {

constexpr const char* kManualExamples =
    "Example:\n"
    "  translution manual | man -l -";

std::string replaced(const std::string& text, const char* pattern, const char* by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

// Escapes text for roff: backslashes, hyphens, and requests at the start of a line.
std::string plain(const std::string& text) {
  return replaced(replaced(text, R"([\\-])", R"(\$&)"), "(^|\n)(?=[.'])", R"($1\&)");
}

// Formats the help of a command from its arguments to its options: "\n\nTITLE:", followed by lines
// of "  NAME VALUE  description". After a long name, the description begins in the next line.
std::string items(const std::string& help) {
  const auto titled = replaced(help, "\n\n(\\S.*)", "\n.PP\n\\fI$1\\fR");
  return replaced(titled, "\n  (\\S+)(.*?)\\s\\s+(\\S.*)", "\n.TP\n\\fB$1\\fR$2\n$3");
}

// The help of a command as a section; that of the program as the beginning of the page.
std::string section(const CLI::App& command) {
  const auto help = help_formatter(/*columns=*/0)->make_help(&command, full_name(command), {});
  const size_t usage = help.find("Usage: ") + 7, rest = help.find('\n', usage);
  const size_t footer = help.size() - command.get_footer().size() - 1;
  const auto call = plain(help.substr(usage, rest - usage));
  const auto description = plain(command.get_description());
  const auto title = command.get_parent() != nullptr
                         ? fmt::format(".SS \"{}\"\n{}", call, description)
                         : fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n.SH DESCRIPTION",
                                       command.get_name(), description, call);
  return fmt::format("{}{}.PP\n.nf\n{}.fi\n", title,
                     items(plain(help.substr(rest, footer - 1 - rest))),
                     plain(help.substr(footer)));
}

std::string manual(const CLI::App& program) {
  auto page =
      fmt::format(".TH TRANSLUTION 1 \"\" \"{}\" \"User Commands\"\n", plain(program.version()));
  for (const auto* command : all_commands(program))
    page += section(*command) + (command == &program ? ".SH COMMANDS\n" : "");
  return page +
         ".SH EXIT STATUS\n0 on success, 1 on failure, 2 on a wrong call; 130, 143 or 129 if a "
         "training was saved and stopped by SIGINT, SIGTERM or SIGHUP.\n";
}

}  // namespace

void add_manual(Command program) {
  auto command = program.add_command("manual", "Print the manual page");
  command.footer(kManualExamples);
  command.run([program] { fmt::print("{}", manual(program.app())); });
}

}  // namespace translution::cli
