#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "commands.h"
#include "translution/core/error.h"
#include "translution/core/settings.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/reproduce/markdown.h"

namespace translution::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kLargest = 1e300;

constexpr const char* kFooter =
    "DIR has results of `translution reproduce`, one file for each table: mnist.json. In FILE, "
    "the\n"
    "lines between <!-- results mnist --> and <!-- end of results --> are replaced.\n"
    "\n"
    "Examples:\n"
    "  translution results results README.md docs/reproducing.md\n"
    "  translution results results README.md docs/reproducing.md --check";

struct ResultsFlags {
  std::string directory;
  std::vector<std::string> files;
  bool check = false;
};

std::vector<Results> read_all(const std::string& directory) {
  ensure(fs::is_directory(directory), directory, ": no such directory");
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Results> all;
  for (const auto& path : paths) all.push_back(parse_results(read_file(path), path));
  return all;
}

// The value that the curve of a training has for a figure; nothing where it has none.
std::optional<double> value_in(const std::string& path, const FigureResult& figure) {
  std::istringstream lines(read_file(path));
  std::optional<double> value;
  for (std::string line; std::getline(lines, line);) {
    const auto fields = Value{path, line}.words();  // step, epoch, split, name, value
    if (fields.size() == 5 && fields[0] == std::to_string(figure.step) && fields[2] == figure.set &&
        fields[3] == figure.metric)
      value = Value{path, fields[4]}.real(0, kLargest);
  }
  return value;
}

// Every figure is one that a training has logged: its curve lies beside the results.
void check_curves(const Results& results, const std::string& directory) {
  for (const auto& row : results.rows)
    for (const auto& figure : row.figures) {
      if (!figure.ours) continue;
      const auto path = join(directory, "/", results.table, "/", figure.run, ".csv");
      const auto logged = value_in(path, figure);
      ensure(logged && figure_value(figure.metric, *logged) == *figure.ours, path,
             ": does not have ", figure.metric, " on ", figure.set, " at step ", figure.step,
             " as ", directory, "/", results.table, ".json does, ", *figure.ours);
    }
}

void run_results(const ResultsFlags& flags) {
  const auto all = read_all(flags.directory);
  for (const auto& results : all) check_curves(results, flags.directory);
  for (const auto& path : flags.files) {
    const auto before = read_file(path), after = fill_in(before, all, path);
    if (before == after) continue;
    ensure(!flags.check, path, ": its tables are not what ", flags.directory,
           " has; `translution results ", flags.directory, " ", path, "` writes them");
    write_file_atomically(path, after);
    fmt::print("{}\n", path);
  }
}

}  // namespace

void add_results(CLI::App& program) {
  auto* command =
      program.add_subcommand("results", "Tables of results, written into Markdown files");
  const auto flags = std::make_shared<ResultsFlags>();
  command->add_option("DIR", flags->directory, "with the results")->required();
  command->add_option("FILE", flags->files, "to be filled in")->required();
  command->add_flag("--check", flags->check, "change nothing; fail if something would change")
      ->disable_flag_override();
  command->footer(kFooter);
  command->callback([flags] { run_results(*flags); });
}

}  // namespace translution::cli
