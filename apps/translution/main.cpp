#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>

#include "commands.h"
#include "instruction_sets.h"
#include "signals.h"
#include "translution/core/error.h"
#include "translution/core/memory.h"
#include "translution/core/names.h"
#include "translution/core/units.h"
#include "version.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kProgramExamples =
    "Examples:\n"
    "  translution list\n"
    "  translution train --model vit-a/12 --method alpha_translution --out runs/alpha\n"
    "  translution eval runs/alpha\n"
    "  translution report runs/alpha\n"
    "  translution info --model vit-a/12 --method translution --image-size 84\n"
    "  translution data text book.txt --out tokens\n"
    "  translution convert gpt2/model.safetensors gpt2.safetensors --from gpt2\n"
    "  translution bench op --method translution --cls\n"
    "  translution info --help";

std::string versions() {
  return fmt::format("translution {} (LibTorch {})", kVersion, kTorchVersion);
}

// Exit codes: the call makes no sense, or it does and the work failed.
constexpr int kUsage = 2, kFailure = 1;

// ------------------------------------------------------------------------------------- help

// What follows the name of a command in a call: " RUN... [OPTIONS]".
std::string arguments_of(const CLI::App& app) {
  std::string text = app.get_subcommands({}).empty() ? "" : " COMMAND";
  for (const auto* option : app.get_options())
    if (option->get_positional())
      text += " " + option->get_name(/*positional=*/true) +
              (option->get_expected_max() > 1 ? "..." : "");
  return text + " [OPTIONS]";
}

// Description, usage, commands, groups of options with "Options" at the end, examples.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(34); }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const auto arguments =
        app->get_options([](const CLI::Option* o) { return o->get_positional(); });
    std::string text = app->get_description() + "\n\nUsage: " + name + arguments_of(*app) + "\n";
    if (!arguments.empty()) text += make_group("Arguments", true, arguments);
    text += make_subcommands(app, CLI::AppFormatMode::Normal);
    auto groups = app->get_groups();
    std::stable_partition(groups.begin(), groups.end(),
                          [](const std::string& group) { return group != "Options"; });
    for (const auto& group : groups) text += make_group(group, false, options_of(app, group));
    return text + "\n" + app->get_footer() + "\n";
  }

  // Arguments have no values of their own.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? "" : Formatter::make_option_opts(option);
  }

 private:
  static std::vector<const CLI::Option*> options_of(const CLI::App* app, const std::string& group) {
    return app->get_options(
        [&](const CLI::Option* o) { return o->get_group() == group && !o->get_positional(); });
  }
};

// ----------------------------------------------------------------------------------- errors

int fail(int code, std::string message) {
  for (char& letter : message)
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  // Not with fmt, which throws where standard error cannot be written.
  std::fputs(("translution: " + message + "\n").c_str(), stderr);
  return code;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    if (!option->get_positional()) names.push_back("--" + option->get_lnames().front());
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// The command that the call names, as in "bench op": the innermost.
const CLI::App& chosen(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : chosen(*commands.front());
}

// The first of the commands, outermost first, that was given what it does not know.
const CLI::App& app_with_extras(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() || !app.remaining().empty() ? app : app_with_extras(*commands.front());
}

bool belongs_to_a_command(const CLI::App& app, const std::string& option) {
  const auto commands = all_commands(app);
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
    return command->get_option_no_throw(option) != nullptr;
  });
}

std::vector<std::string> words_in_text(const std::string& text) {
  std::vector<std::string> words(1);
  for (const unsigned char letter : text) {
    if (std::isalpha(letter))
      words.back() += static_cast<char>(std::tolower(letter));
    else if (!words.back().empty())
      words.emplace_back();
  }
  return words;
}

// The option whose help has the words of an unknown one, as "learning rate" has --learning-rate.
// Short words, as in --max-length, say too little.
std::optional<std::string> option_about(const CLI::App& app, const std::string& unknown) {
  constexpr size_t kShort = 3;
  auto words = words_in_text(unknown);
  words.erase(std::remove_if(words.begin(), words.end(),
                             [](const std::string& word) { return word.size() <= kShort; }),
              words.end());
  if (words.empty()) return std::nullopt;
  for (const auto* option : app.get_options()) {
    const auto help = words_in_text(option->get_description());
    const bool all = std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(help.begin(), help.end(), word) != help.end();
    });
    if (all && !option->get_positional() && option != app.get_help_ptr())
      return "--" + option->get_lnames().front();
  }
  return std::nullopt;
}

std::string option_hint(const CLI::App& app, const std::string& option) {
  auto near = near_name(option, option_names(app));
  if (!near) near = option_about(app, option);
  return near ? join("; did you mean ", *near, "?") : join("; see ", full_name(app), " --help");
}

// What to say about the first argument that neither the program nor its command knows.
std::string describe_extra(const CLI::App& program) {
  const CLI::App& app = app_with_extras(program);
  const std::string extra = app.remaining().front();
  const std::string option = extra.substr(0, extra.find('='));
  if (extra.front() == '-' && belongs_to_a_command(app, option))
    return join("option ", option, " goes after the command");
  if (extra.front() == '-') return join("unknown option ", option, option_hint(app, option));
  const auto commands = command_names(app);
  if (!commands.empty() && app.get_subcommands().empty()) {
    const auto near = near_name(extra, commands);
    return join(
        "unknown command '", extra, "'; ",
        near ? join("did you mean '", *near, "'?") : join("see ", full_name(app), " --help"));
  }
  return join("unexpected argument '", extra, "'; see ", full_name(chosen(program)), " --help");
}

// CLI11 puts the option in front: "--model: 1 required NAME missing", "json was given a …".
std::string describe_mismatch(const CLI::App& program, const std::string& message) {
  const std::string name = message.substr(0, message.find_first_of(": "));
  const auto* option = chosen(program).get_option_no_throw(name);
  if (option == nullptr) return join("--", name, " takes no value");
  return name + (option->count() > 1 ? " is given more than once" : ": expected a value");
}

// ---------------------------------------------------------------------------------- program

constexpr const char* kUnset = "is a shell variable not set?";

// An empty value is never meant: as a directory it would be the root.
void refuse_empty_values(CLI::App& app) {
  for (auto* option : app.get_options())
    if (option->get_items_expected_max() > 0)
      option->check([](const std::string& text) {
        return text.empty() ? join("expected a value, got ''; ", kUnset) : std::string();
      });
  for (auto* command : app.get_subcommands({})) refuse_empty_values(*command);
}

// The parser would take what follows "--out=" for its value.
void refuse_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    require(word.rfind("--", 0) != 0 || word.find('=') + 1 != word.size(), word,
            " expected a value behind the '='; ", kUnset);
  }
}

void set_up(CLI::App& program) {
  program.formatter(std::make_shared<HelpFormatter>());
  program.set_help_flag("-h,--help", "print this help");
  program.set_version_flag("--version", versions(), "print versions and instruction sets");
  program.footer(kProgramExamples);
  program.require_subcommand(0, 1);
  for (const auto add : {add_list, add_info, add_train, add_eval, add_predict, add_generate,
                         add_report, add_reproduce, add_results, add_data, add_convert, add_bench,
                         add_configs, add_completion, add_manual})
    add(Command(program));
  refuse_empty_values(program);
}

int parse_and_run(CLI::App& program, int argc, char** argv) {
  try {
    refuse_empty_values(argc, argv);
    program.parse(argc, argv);
    if (chosen(program).get_subcommands({}).empty()) return 0;
    fmt::print(stderr, "{}", program.help());
    return kUsage;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", program.help());
    return 0;
  } catch (const CLI::CallForVersion&) {
    fmt::print("{}\n{}", versions(), describe(instruction_sets()));
    return 0;
  } catch (const CLI::ExtrasError&) {
    return fail(kUsage, describe_extra(program));
  } catch (const CLI::ArgumentMismatch& error) {
    return fail(kUsage, describe_mismatch(program, error.what()));
  } catch (const CLI::ParseError& error) {
    return fail(kUsage, error.what());
  }
}

// A standard stream that came closed would become the next file that is opened, such as the log of
// a run, and what is printed would go there.
void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return;
}

// What to say of an error about memory; empty for any other.
std::string describe_memory_error(const std::exception& error) {
  const std::string text = error.what();
  const std::string asked = "you tried to allocate ";  // LibTorch's words
  const size_t at = text.find(asked);
  const bool standard = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                        dynamic_cast<const std::length_error*>(&error) != nullptr;
  if (!standard && at == std::string::npos) return "";
  std::string what = "an allocation failed";
  if (!standard) {
    const size_t number = at + asked.size();
    what = text.substr(number, text.find(' ', number) - number) + " bytes could not be allocated";
  }
  return join("out of memory: ", what, ", and there are ",
              in_bytes(static_cast<double>(usable_bytes())),
              " in all; lower --batch, or choose a smaller model or input");
}

int run(int argc, char** argv) {
  open_standard_streams();
  try {
    CLI::App program("Attention whose weights depend on the offset between two tokens",
                     "translution");
    set_up(program);
    const int code = parse_and_run(program, argc, argv);
    if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to standard output");
    return code;
  } catch (const Stopped& error) {
    return fail(error.exit_code(), error.what());
  } catch (const std::invalid_argument& error) {
    return fail(kUsage, error.what());
  } catch (const std::exception& error) {
    const std::string memory = describe_memory_error(error), message = error.what();
    if (!memory.empty()) return fail(kFailure, memory);
    return fail(kFailure, message.substr(0, message.find('\n')));  // Torch adds a stack trace
  }
}

}  // namespace

}  // namespace translution::cli

int main(int argc, char** argv) { return translution::cli::run(argc, argv); }
