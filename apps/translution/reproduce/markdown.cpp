#include "apps/translution/reproduce/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "apps/translution/reproduce/seeds.h"
#include "translution/core/error.h"
#include "translution/core/units.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kEnd = "<!-- end of results -->";

// -------------------------------------------------------------------------------------- cells

// "static_dynamic" as "static → dynamic".
std::string title_of(const std::string& figure) {
  if (figure == "top1" || figure == "top5") return fmt::format("top-{} %", figure.back());
  const auto line = figure.find('_');
  if (line == std::string::npos) return figure;
  return figure.substr(0, line) + " → " + figure.substr(line + 1) + " %";
}

const RunResult& run_of(const RowResult& row, const FigureResult& figure) {
  const auto found = std::find_if(row.runs.begin(), row.runs.end(),
                                  [&](const RunResult& run) { return run.name == figure.run; });
  ensure(found != row.runs.end(), "results: no run ", figure.run, " in row ", row.number);
  return *found;
}

std::string ours_text(const RowResult& row, const FigureResult& figure) {
  if (!figure.ours) return "–";
  const auto& run = run_of(row, figure);
  const auto text = fmt::format("{:.2f}", *figure.ours);
  if (figure.step == run.steps) return "**" + text + "**";
  return fmt::format("{} (step {} of {})", text, grouped(figure.step), grouped(run.steps));
}

std::string paper_text(const FigureResult& figure) {
  return figure.paper ? fmt::format("{:.2f}", *figure.paper) : "–";
}

std::string mean_text(const std::vector<double>& values) {
  if (values.empty()) return "–";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", mean_of(values), *least, *most);
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

// The same for all runs of a row, or each.
template <typename Text>
std::string of_runs(const RowResult& row, const Text& text) {
  std::vector<std::string> parts;
  for (const auto& run : row.runs) {
    auto part = text(run);
    if (part.empty()) part = "–";
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  return joined(parts, " / ");
}

// A bar in a cell would end it.
std::string escaped(std::string cell) {
  for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2)
    cell.insert(at, "\\");
  return cell;
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const auto& cell : cells) line += " " + escaped(cell) + " |";
  return line + "\n";
}

// ---------------------------------------------------------------------------------- trainings

std::vector<std::string> titles_of(const RowResult& row) {
  std::vector<std::string> titles = {"row", "model", "method", "parameters: paper", "ours"};
  for (const auto& figure : row.figures) {
    titles.push_back(title_of(figure.name) + ": paper");
    titles.push_back("ours");
  }
  for (const char* title : {"seen", "training seconds", "seed", "commit", "machine", "cut"})
    titles.push_back(title);
  return titles;
}

std::string method_text(const RowName& row) {
  return "`" + row.method + "`" + (row.variant.empty() ? "" : ", " + row.variant);
}

std::string millions_text(const RowResult& row) {
  return row.paper_millions ? *row.paper_millions + " M" : "–";
}

std::vector<std::string> cells_of(const RowResult& row) {
  std::vector<std::string> cells = {std::to_string(row.number), row.model, method_text(row),
                                    millions_text(row), grouped(row.parameters)};
  for (const auto& figure : row.figures) {
    cells.push_back(paper_text(figure));
    cells.push_back(ours_text(row, figure));
  }
  cells.push_back(of_runs(row, [](const RunResult& run) { return grouped(run.seen); }));
  cells.push_back(of_runs(row, [](const RunResult& run) { return grouped(run.seconds); }));
  cells.push_back(std::to_string(row.seed));
  cells.push_back(of_runs(row, [](const RunResult& run) { return run.commit; }));
  cells.push_back(of_runs(row, [](const RunResult& run) { return run.machine; }));
  cells.push_back(row.cuts.empty() ? "nothing" : joined(row.cuts, "; "));
  return cells;
}

// Columns that the short table leaves out.
bool is_detail(const std::string& title) {
  constexpr const char* kDetails[] = {"training seconds", "commit", "machine"};
  return std::find(std::begin(kDetails), std::end(kDetails), title) != std::end(kDetails);
}

// The lines below their titles, in short without the columns of details.
std::string table_of(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& lines, bool details) {
  const auto line = [&](const std::vector<std::string>& cells) {
    std::vector<std::string> shown;
    for (size_t c = 0; c < cells.size(); ++c)
      if (details || !is_detail(titles[c])) shown.push_back(cells[c]);
    return line_of(shown);
  };
  std::string text = line(titles) + line(std::vector<std::string>(titles.size(), "---"));
  for (const auto& cells : lines) text += line(cells);
  return text + "\n";
}

std::string trainings_table(const Results& results, bool details) {
  if (results.rows.empty()) return "";
  std::vector<std::vector<std::string>> lines;
  for (const auto& row : results.rows) lines.push_back(cells_of(row));
  return join("The paper's table \"", results.title, "\" beside what was trained here:\n\n",
              table_of(titles_of(results.rows.front()), lines, details));
}

// -------------------------------------------------------------------------------- one step each

std::string data_text(const StepResult& step) {
  return step.precision == "float32" ? step.data : join(step.data, "; precision ", step.precision);
}

std::string steps_table(const Results& results, bool details) {
  if (results.steps.empty()) return "";
  const std::vector<std::string> titles = {"row",     "model",  "method", "parameters",
                                           "batch",   "parts",  "data",   "seconds",
                                           "peak GB", "commit", "machine"};
  std::vector<std::vector<std::string>> lines;
  for (const auto& step : results.steps)
    lines.push_back({std::to_string(step.number), step.model, method_text(step),
                     grouped(step.parameters), grouped(step.batch), grouped(step.parts),
                     data_text(step), fmt::format("{:.1f}", step.seconds),
                     fmt::format("{:.2f}", step.peak_bytes / 1e9), step.commit, step.machine});
  return "One step of training:\n\n" + table_of(titles, lines, details);
}

// -------------------------------------------------------------------------------- several seeds

std::string seeds_table(const Results& results) {
  const auto groups = group_seeds(results);
  std::string lines;
  for (const auto& group : groups) {
    if (group.finished() < 2) continue;
    std::vector<std::string> cells = {std::to_string(group.row->number), group.row->model,
                                      method_text(*group.row), std::to_string(group.finished())};
    for (const auto& values : group.values) cells.push_back(mean_text(values));
    cells.push_back(joined(group.row->cuts, "; "));
    lines += line_of(cells);
  }
  if (lines.empty()) return "";
  std::vector<std::string> titles = {"row", "model", "method", "seeds"};
  for (const auto& figure : groups.front().row->figures) titles.push_back(title_of(figure.name));
  titles.push_back("cut");
  return "Means of several seeds, and the least and the most of them:\n\n" + line_of(titles) +
         line_of(std::vector<std::string>(titles.size(), "---")) + lines + "\n";
}

// Do two rows compare methods, and is it open which of them is ahead?
bool open_between(const SeedGroup& a, const SeedGroup& b, size_t figure) {
  return a.row->number != b.row->number && a.row->model == b.row->model &&
         a.row->cuts == b.row->cuts && a.row->figures[figure].run != b.row->figures[figure].run &&
         is_open(a.values[figure], b.values[figure]);
}

// "rows 1 and 2, row 2 and rows 3, 5 (1 of 20 passes)".
std::string open_pairs(const Results& results, const std::vector<SeedGroup>& groups,
                       size_t figure) {
  std::vector<std::string> pairs;
  for (auto a = groups.begin(); a != groups.end(); ++a) {
    std::vector<std::string> others;
    for (auto b = a + 1; b != groups.end(); ++b)
      if (open_between(*a, *b, figure)) others.push_back(std::to_string(b->row->number));
    if (others.empty()) continue;
    const auto special = special_cuts(*a->row, results);
    pairs.push_back(join(others.size() == 1 ? "rows " : "row ", a->row->number,
                         others.size() == 1 ? " and " : " and rows ", joined(others, ", "),
                         special.empty() ? "" : " (" + special + ")"));
  }
  return joined(pairs, "; ");
}

std::string open_sentences(const Results& results) {
  const auto groups = group_seeds(results);
  std::string text;
  for (size_t figure = 0; !groups.empty() && figure < groups.front().values.size(); ++figure)
    if (const auto pairs = open_pairs(results, groups, figure); !pairs.empty())
      text += join("- ", title_of(groups.front().row->figures[figure].name), ": ", pairs, "\n");
  if (text.empty()) return "";
  return "Within a point of each other, with one seed or with seeds that overlap, so that their "
         "order is open:\n\n" +
         text + "\n";
}

std::string commands_of(const Results& results) {
  std::vector<std::string> commands;
  for (const auto& row : results.rows) commands.push_back(row.command);
  for (const auto& step : results.steps) commands.push_back(step.command);
  return "```sh\n" + joined(commands, "\n") + "\n```\n";
}

// A line that says what is to be put below it.
struct Mark {
  bool summary;
  std::string table;
};

std::optional<Mark> mark_in(const std::string& line) {
  for (const bool summary : {false, true}) {
    const std::string begin = summary ? "<!-- summary " : "<!-- results ", end = " -->";
    if (line.rfind(begin, 0) != 0 || line.size() <= begin.size() + end.size()) continue;
    return Mark{summary, line.substr(begin.size(), line.size() - begin.size() - end.size())};
  }
  return std::nullopt;
}

}  // namespace

std::string markdown_table(const Results& results) {
  return trainings_table(results, /*details=*/true) + seeds_table(results) +
         open_sentences(results) + steps_table(results, /*details=*/true) + commands_of(results);
}

std::string markdown_summary(const Results& results) {
  return trainings_table(results, /*details=*/false) + open_sentences(results) +
         steps_table(results, /*details=*/false);
}

std::string fill_in(const std::string& document, const std::vector<Results>& all,
                    const std::string& path) {
  std::istringstream lines(document);
  std::string text;
  std::optional<Mark> open;
  for (std::string line; std::getline(lines, line);) {
    if (line == kEnd) {
      ensure(open.has_value(), path, ": '", kEnd, "' without a beginning");
      open.reset();
    }
    if (!open) text += line + "\n";
    const auto mark = mark_in(line);
    if (!mark) continue;
    ensure(!open, path, ": '", line, "' before the end of the results of ", mark->table);
    open = mark;
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Results& r) { return r.table == mark->table; });
    ensure(found != all.end(), path, ": '", line, "': there are no results of that name");
    text += "\n" + (mark->summary ? markdown_summary(*found) : markdown_table(*found) + "\n");
  }
  ensure(!open, path, ": the results are not closed with '", kEnd, "'");
  return text;
}

}  // namespace translution::cli
