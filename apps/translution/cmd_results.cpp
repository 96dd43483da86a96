#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/translution/reproduce/curves.h"
#include "apps/translution/reproduce/document.h"
#include "commands.h"
#include "json_text.h"
#include "model_flags.h"
#include "results_picture.h"
#include "translution/core/error.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"

namespace translution::cli {

using namespace detail;

namespace {

namespace fs = std::filesystem;

constexpr const char* kResultsExamples =
    "DIR holds the results of `translution reproduce`: a file for each table, mnist.json, and\n"
    "a directory mnist/ with the curve of each training. --take merges in the rows of a\n"
    "`reproduce --out` directory. In FILE, the lines between a mark and\n"
    "<!-- end of results --> are replaced. The marks are <!-- results mnist -->,\n"
    "<!-- summary mnist --> (best-trained rows) and <!-- compare mnist init --> (rows that\n"
    "differ in one option). A picture shows the losses of a table's trainings.\n"
    "\n"
    "Examples:\n"
    "  translution results results README.md docs/reproducing.md --take out/mnist\n"
    "  translution results results README.md docs/reproducing.md --pictures docs/images/results\n"
    "  translution results results README.md docs/reproducing.md --check";

struct ResultsFlags {
  std::string directory;
  Option pictures;
  std::vector<std::string> files, taken;
  bool check = false;
};

// The value of a figure in the curve of its training.
std::optional<double> logged_value(const std::string& path, const FigureResult& figure) {
  std::optional<double> found;
  for (const auto& moment : read_curves(path)) {
    const auto& [name, value] = moment.values.front();
    if (moment.step == figure.step && moment.split == figure.set && name == figure.metric)
      found = value;
  }
  return found;
}

// Every figure must be in the log of its training.
void check_curves(const Results& results, const std::string& curves, const std::string& json) {
  for (const auto& row : results.rows)
    for (const auto& figure : row.figures) {
      if (!figure.ours) continue;
      const auto path = join(curves, "/", figure.run, ".csv");
      const auto logged = logged_value(path, figure);
      ensure(logged && figure_value(figure.metric, *logged) == *figure.ours, path, ": expected ",
             figure.metric, " ", *figure.ours, " on ", figure.set, " at step ", figure.step,
             " as in ", json, ", got ",
             logged ? join(figure_value(figure.metric, *logged)) : "no such line");
    }
}

// Results to merge in. All of them are checked before anything is written.
struct Taken {
  Results merged;
  std::vector<std::pair<std::string, std::string>> files;  // path and content of each curve
};

bool has_run(const Results& results, const RunResult& run) {
  for (const auto& row : results.rows)
    for (const auto& other : row.runs)
      if (other.name == run.name && other.step == run.step) return true;
  return false;
}

Taken take(const std::string& out, const std::string& directory, const std::vector<Results>& all) {
  const std::string json = out + "/results.json";
  const auto fresh = parse_results(read_file(json), json);
  check_curves(fresh, out + "/curves", json);
  Taken taken{fresh, {}};
  for (const auto& results : all)
    if (results.table == fresh.table) taken.merged = merge_results(results, fresh);
  for (const auto& row : fresh.rows)
    for (const auto& run : row.runs)
      if (run.step > 0 && has_run(taken.merged, run))
        taken.files.emplace_back(join(directory, "/", fresh.table, "/", run.name, ".csv"),
                                 read_file(join(out, "/curves/", run.name, ".csv")));
  return taken;
}

void replace_table(const Results& fresh, std::vector<Results>& all) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Results& r) { return r.table == fresh.table; });
  found == all.end() ? all.push_back(fresh) : void(*found = fresh);
}

// Writes the file if it differs; with --check throws instead.
void update(const std::string& path, const std::string& after, const ResultsFlags& flags) {
  if (fs::exists(path) && read_file(path) == after) return;
  ensure(!flags.check, path, ": differs from ", flags.directory,
         "; run the same command without --check to write it");
  write_file_atomically(path, after);
  fmt::print("{}\n", path);
}

void write_taken(const ResultsFlags& flags, const Taken& taken) {
  const auto& table = taken.merged.table;
  if (!taken.files.empty()) make_directories(flags.directory + "/" + table);
  for (const auto& [path, content] : taken.files) update(path, content, flags);
  update(flags.directory + "/" + table + ".json", json_text(to_json(taken.merged), 1), flags);
}

void run_results(const ResultsFlags& flags) {
  require(!flags.check || flags.taken.empty(),
          "--check and --take exclude each other; leave one out");
  auto all = read_results(flags.directory);
  std::vector<Taken> taken;
  for (const auto& out : flags.taken) {
    taken.push_back(take(out, flags.directory, all));
    replace_table(taken.back().merged, all);
  }
  std::vector<std::string> documents;
  for (const auto& path : flags.files) documents.push_back(fill_in(read_file(path), all, path));
  for (const auto& part : taken) write_taken(flags, part);
  for (const auto& results : all) {
    const auto curves = flags.directory + "/" + results.table;
    check_curves(results, curves, curves + ".json");
    if (!flags.pictures.given()) continue;
    const auto picture = results_picture(results, curves);
    if (!picture.empty())
      update(value_of(flags.pictures).text + "/" + results.table + ".svg", picture, flags);
  }
  for (size_t f = 0; f < documents.size(); ++f) update(flags.files[f], documents[f], flags);
}

}  // namespace

void add_results(Command program) {
  auto command = program.add_command("results", "Write tables of results into Markdown files");
  const auto flags = std::make_shared<ResultsFlags>();
  command.argument("DIR", flags->directory, "directory of results");
  command.argument("FILE", flags->files, "Markdown files to fill in");
  flags->pictures =
      command.option("--pictures", "DIR", "directory for pictures, one per table: mnist.svg");
  command.option("--take", "OUT", flags->taken,
                 "directory of `translution reproduce --out` to merge into DIR");
  command.flag("--check", flags->check, "change nothing; fail if something would change");
  command.footer(kResultsExamples);
  command.run([flags] { run_results(*flags); });
}

}  // namespace translution::cli
