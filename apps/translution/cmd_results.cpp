#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "commands.h"
#include "results_picture.h"
#include "translution/core/error.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/reproduce/curves.h"
#include "translution/reproduce/markdown.h"

namespace translution::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    "DIR has results of `translution reproduce`, one file for each table: mnist.json. In FILE, "
    "the\n"
    "lines between <!-- results mnist --> and <!-- end of results --> are replaced. A picture "
    "shows\n"
    "the losses of a table's trainings.\n"
    "\n"
    "Examples:\n"
    "  translution results results README.md docs/reproducing.md --pictures docs/images/results\n"
    "  translution results results README.md docs/reproducing.md --check";

struct ResultsFlags {
  std::string directory, pictures;
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
  std::optional<double> found;
  for (const auto& moment : read_curves(path)) {
    const auto& [name, value] = moment.values.front();
    if (moment.step == figure.step && moment.split == figure.set && name == figure.metric)
      found = value;
  }
  return found;
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

// Writes what is new, or refuses it where nothing may change.
void update(const std::string& path, const std::string& after, const ResultsFlags& flags) {
  if (fs::exists(path) && read_file(path) == after) return;
  ensure(!flags.check, path, ": is not what ", flags.directory,
         " has; the same command without --check writes it");
  write_file_atomically(path, after);
  fmt::print("{}\n", path);
}

void run_results(const ResultsFlags& flags) {
  const auto all = read_all(flags.directory);
  for (const auto& results : all) {
    check_curves(results, flags.directory);
    if (flags.pictures.empty()) continue;
    const auto picture = results_picture(results, flags.directory + "/" + results.table);
    if (!picture.empty()) update(flags.pictures + "/" + results.table + ".svg", picture, flags);
  }
  for (const auto& path : flags.files) update(path, fill_in(read_file(path), all, path), flags);
}

}  // namespace

void add_results(CLI::App& program) {
  auto* command =
      program.add_subcommand("results", "Tables of results, written into Markdown files");
  const auto flags = std::make_shared<ResultsFlags>();
  command->add_option("DIR", flags->directory, "with the results")->required();
  command->add_option("FILE", flags->files, "to be filled in")->required();
  command->add_option("--pictures", flags->pictures, "where mnist.svg and the like are written")
      ->type_name("DIR");
  command->add_flag("--check", flags->check, "change nothing; fail if something would change")
      ->disable_flag_override();
  command->footer(kFooter);
  command->callback([flags] { run_results(*flags); });
}

}  // namespace translution::cli
