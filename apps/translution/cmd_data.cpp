#include "commands.h"
#include "data_commands.h"

namespace translution::cli {
namespace {

constexpr const char* kDataExamples =
    "Examples:\n"
    "  translution data text book.txt --out tokens\n"
    "  translution data cifar10 data/cifar10-files --out data/cifar10\n"
    "  translution data molecules qm7.txt --out data/qm7\n"
    "  translution data text --help";

}  // namespace

void add_data(Command program) {
  auto command = program.add_command("data", "Prepare data for training");
  command.takes_a_command();
  command.footer(kDataExamples);
  add_data_text(command);
  add_data_cifar10(command);
  add_data_molecules(command);
}

}  // namespace translution::cli
