#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
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
    "`translution COMMAND --help` prints the options of a command, with examples.\n"
    "\n"
    "Examples:\n"
    "  translution list\n"
    "  translution train --model vit-a/12 --method alpha_translution --out runs/alpha\n"
    "  translution eval runs/alpha\n"
    "  translution report runs/alpha\n"
    "  translution serve runs/alpha\n"
    "  translution info --model vit-a/12 --method translution --image-size 84\n"
    "  translution plan --model vit-c/16 --method translution --machines 8\n"
    "  translution bench op --method translution --cls\n"
    "  translution data text book.txt --out tokens\n"
    "  translution convert gpt2/model.safetensors gpt2.safetensors --from gpt2";

constexpr size_t kHelpColumns = 100;

std::string versions() {
  return fmt::format("translution {} (LibTorch {})", kVersion, kTorchVersion);
}

// Exit codes: a wrong call, and a failure of the work.
constexpr int kUsage = 2, kFailure = 1;

// ----------------------------------------------------------------------------------- errors

// With several processes, the number of this one, unless the message has the number of another.
std::string rank_prefix(const std::string& message) {
  const char *rank = std::getenv("RANK"), *size = std::getenv("WORLD_SIZE");
  const bool one = rank == nullptr || size == nullptr || std::string(size) == "1";
  return one || message.rfind("rank ", 0) == 0 ? "" : join("rank ", rank, ": ");
}

int fail(int code, std::string message) {
  if (message.empty()) return code;
  message = rank_prefix(message) + message;
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

// The innermost command that the call names, as in "bench op".
const CLI::App& chosen(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : chosen(*commands.front());
}

// The outermost command of the call that has unknown arguments.
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

// The option whose help contains all words of the unknown option's name: --lr, "learning rate", for
// --learning-rate. Words of up to three letters, as in --max-length, are ignored.
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

// The message about the first unknown argument.
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

// CLI11's message begins with the option: "--model: 1 required NAME missing", "json was given a …".
std::string describe_mismatch(const CLI::App& program, const std::string& message) {
  const std::string name = message.substr(0, message.find_first_of(": "));
  const auto* option = chosen(program).get_option_no_throw(name);
  if (option == nullptr) return join("--", name, " takes no value");
  return name + (option->count() > 1 ? " is given more than once" : ": expected a value");
}

// ---------------------------------------------------------------------------------- program

constexpr const char* kUnset = "is a shell variable not set?";

// An empty value is always a mistake. As a directory it would be the root.
void refuse_empty_values(CLI::App& app) {
  for (auto* option : app.get_options())
    if (option->get_items_expected_max() > 0)
      option->check([](const std::string& text) {
        return text.empty() ? join("expected a value, got ''; ", kUnset) : std::string();
      });
  for (auto* command : app.get_subcommands({})) refuse_empty_values(*command);
}

// CLI11 would take the next argument as the value of "--out=".
void refuse_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    require(word.rfind("--", 0) != 0 || word.find('=') + 1 != word.size(), word,
            " expected a value after the '='; ", kUnset);
  }
}

struct CommandGroup {
  const char* title;
  std::vector<void (*)(Command)> commands;  // functions that add them
};

const CommandGroup kGroups[] = {
    {"Train and use models",
     {add_train, add_launch, add_eval, add_predict, add_generate, add_report, add_serve}},
    {"Study models and reproduce the paper",
     {add_list, add_info, add_plan, add_bench, add_reproduce, add_results, add_configs}},
    {"Tools", {add_data, add_convert, add_completion, add_manual}}};

void set_up(CLI::App& program) {
  program.formatter(help_formatter(kHelpColumns));
  program.set_help_flag("-h,--help", "print this help");
  program.set_version_flag("--version", versions(), "print versions and instruction sets");
  program.footer(kProgramExamples);
  program.require_subcommand(0, 1);
  for (const auto& group : kGroups)
    for (const auto add : group.commands) {
      add(Command(program));
      program.get_subcommands({}).back()->group(group.title);
    }
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

// If a standard stream is closed at the start, the next file opened, such as the log of a run,
// would get its descriptor and receive what is printed.
void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return;
}

// The message for a failed allocation; empty for any other error.
std::string describe_memory_error(const std::exception& error) {
  const std::string text = error.what();
  const std::string phrase = "you tried to allocate ";  // LibTorch's
  const size_t at = text.find(phrase);
  const bool standard = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                        dynamic_cast<const std::length_error*>(&error) != nullptr;
  if (!standard && at == std::string::npos) return "";
  std::string what = "an allocation failed";
  if (!standard) {
    const size_t number = at + phrase.size();
    what = text.substr(number, text.find(' ', number) - number) + " bytes could not be allocated";
  }
  return join("out of memory: ", what, "; ", in_bytes(static_cast<double>(usable_bytes())),
              " are usable in all; lower --batch, or choose a smaller model or input");
}

int run(int argc, char** argv) {
  open_standard_streams();
  // Otherwise the bits of MKL's products depend on the alignment of memory.
  setenv("MKL_CBWR", "AUTO", 0);
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
