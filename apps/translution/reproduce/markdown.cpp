#include "apps/translution/reproduce/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "apps/translution/reproduce/trained_rows.h"
#include "translution/core/error.h"
#include "translution/core/units.h"

namespace translution::cli {

using namespace detail;

namespace {

using Cells = std::vector<std::string>;

// --------------------------------------------------------------------------------------- tables

// An unescaped bar would end the cell.
std::string escaped(std::string cell) {
  for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2)
    cell.insert(at, "\\");
  return cell;
}

std::string line_of(const Cells& cells) {
  std::string line = "|";
  for (const auto& cell : cells) line += " " + escaped(cell) + " |";
  return line + "\n";
}

std::string table_of(const Cells& titles, const std::vector<Cells>& lines) {
  std::string text = line_of(titles) + line_of(Cells(titles.size(), "---"));
  for (const auto& cells : lines) text += line_of(cells);
  return text + "\n";
}

// Sentences that end with a space, as a paragraph.
std::string paragraph(std::string sentences) {
  if (sentences.empty()) return "";
  sentences.pop_back();
  return sentences + "\n\n";
}

// Tables and paragraphs end with an empty line, texts for a document without one.
std::string without_last_line(std::string text) {
  text.pop_back();
  return text;
}

// -------------------------------------------------------------------------------------- figures

// "static_dynamic" as "static → dynamic %".
std::string title_of(const std::string& figure) {
  if (figure == "top1" || figure == "top5") return fmt::format("top-{} %", figure.back());
  const auto line = figure.find('_');
  if (line == std::string::npos) return figure;
  return figure.substr(0, line) + " → " + figure.substr(line + 1) + " %";
}

std::string unfinished_text(const RowResult& row, const FigureResult& figure) {
  if (!figure.ours) return "–";
  const auto run = std::find_if(row.runs.begin(), row.runs.end(),
                                [&](const RunResult& other) { return other.name == figure.run; });
  ensure(run != row.runs.end(), "results: no run ", figure.run, " in row ", row.number);
  return fmt::format("{:.2f} at step {} of {}", *figure.ours, grouped(figure.step),
                     grouped(run->steps));
}

std::string ours_text(const TrainedRow& row, size_t figure) {
  const auto& values = row.values[figure];
  if (values.empty()) return unfinished_text(*row.row, row.row->figures[figure]);
  const auto mean = fmt::format("**{:.2f}**", mean_of(values));
  if (values.size() == 1) return mean;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{} ± {:.2f}", mean, (*most - *least) / 2);
}

std::string paper_text(const FigureResult& figure) {
  return figure.paper ? fmt::format(" ({:.2f})", *figure.paper) : "";
}

// "a" to "z", then "a1" and so on.
std::string letter_of(size_t set) {
  const std::string letter(1, static_cast<char>('a' + set % 26));
  return set < 26 ? letter : letter + std::to_string(set / 26);
}

// The letters of each row: two rows share one if their order is open.
Cells open_marks(const std::vector<TrainedRow>& rows, size_t figure) {
  std::vector<Cells> letters(rows.size());
  const auto sets = open_sets(rows, figure);
  for (size_t set = 0; set < sets.size(); ++set)
    for (const size_t row : sets[set]) letters[row].push_back(letter_of(set));
  Cells marks;
  for (const auto& of_row : letters)
    marks.push_back(of_row.empty() ? "" : fmt::format(" <sup>{}</sup>", fmt::join(of_row, ",")));
  return marks;
}

bool have_several_models(const std::vector<TrainedRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const TrainedRow& row) {
    return row.row->model != rows.front().row->model;
  });
}

bool have_several_seeds(const std::vector<TrainedRow>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const TrainedRow& row) { return row.finished() > 1; });
}

// A table of figures; `labels` are the cells that describe each row, below `titles`.
std::string figures_table(Cells titles, std::vector<Cells> labels,
                          const std::vector<TrainedRow>& rows) {
  const bool models = have_several_models(rows), seeds = have_several_seeds(rows);
  if (models) titles.insert(titles.begin(), "model");
  if (seeds) titles.push_back("seeds");
  for (size_t r = 0; r < rows.size(); ++r) {
    if (models) labels[r].insert(labels[r].begin(), rows[r].row->model);
    if (seeds) labels[r].push_back(std::to_string(rows[r].finished()));
  }
  for (size_t f = 0; f < rows.front().values.size(); ++f) {
    titles.push_back(title_of(rows.front().row->figures[f].name));
    const auto marks = open_marks(rows, f);
    for (size_t r = 0; r < rows.size(); ++r)
      labels[r].push_back(ours_text(rows[r], f) + marks[r] + paper_text(rows[r].row->figures[f]));
  }
  return table_of(titles, labels);
}

// ---------------------------------------------------------------------------- words around tables

std::string model_text(const Results& results, const std::vector<TrainedRow>& rows) {
  const auto& model = rows.front().row->model;
  const bool named = results.title.find(model) != std::string::npos;
  return named || have_several_models(rows) ? "" : " with " + model;
}

std::string title_text(const Results& results, const std::vector<TrainedRow>& rows) {
  return join("The paper's table \"", results.title, "\"", model_text(results, rows),
              ". The paper's figures are in brackets. ",
              have_several_seeds(rows) ? "Figures of several seeds are mean ± half of the range."
                                       : "One seed each.");
}

std::string cuts_text(const Cells& cuts) {
  if (cuts.empty()) return "The full recipe:\n\n";
  return fmt::format("Changed from the full recipe: {}.\n\n", fmt::join(cuts, ", "));
}

bool have_open_orders(const std::vector<TrainedRow>& rows) {
  for (size_t f = 0; f < rows.front().values.size(); ++f)
    if (!open_sets(rows, f).empty()) return true;
  return false;
}

std::string open_text(const std::vector<TrainedRow>& rows) {
  if (!have_open_orders(rows)) return "";
  return join(
      "Figures that share a letter in a column of a table are less than a point apart",
      have_several_seeds(rows) ? " and have one seed or overlapping seeds:" : ". With one seed,",
      " their order is open. ");
}

// A summary may show rows that were trained in different ways.
std::string difference_text(const std::vector<TrainedRow>& rows) {
  const bool same = std::all_of(rows.begin(), rows.end(), [&](const TrainedRow& row) {
    return row.cuts == rows.front().cuts;
  });
  return same ? "" : "Rows that were trained differently are not compared. ";
}

std::string method_text(const RowName& row) {
  return "`" + row.method + "`" + (row.variant.empty() ? "" : ", " + row.variant);
}

// The method, and the cuts that not all rows share.
std::string method_and_cuts(const TrainedRow& row, const Cells& shared) {
  auto text = method_text(*row.row);
  for (const auto& cut : row.cuts)
    if (std::find(shared.begin(), shared.end(), cut) == shared.end()) text += ", " + cut;
  return text;
}

// -------------------------------------------------------------------------------- all trainings

std::string parameters_text(const RowResult& row) {
  return grouped(row.parameters) + (row.paper_millions ? " (" + *row.paper_millions + " M)" : "");
}

// The cuts of a group, in bold those that distinguish it from other groups.
Cells emphasised(const Cells& cuts, const Cells& shared) {
  Cells texts;
  for (const auto& cut : cuts)
    texts.push_back(
        std::find(shared.begin(), shared.end(), cut) != shared.end() ? cut : "**" + cut + "**");
  return texts;
}

std::string trainings_text(const Results& results) {
  if (results.rows.empty()) return "";
  const auto rows = trained_rows(results);
  const auto shared = shared_cuts(rows);
  std::string text = title_text(results, rows) + "\n\n";
  for (const auto& group : group_by_cuts(rows)) {
    std::vector<Cells> labels;
    for (const auto& row : group)
      labels.push_back({method_text(*row.row), parameters_text(*row.row)});
    text += cuts_text(emphasised(group.front().cuts, shared)) +
            figures_table({"method", "parameters"}, std::move(labels), group);
  }
  return text + paragraph(open_text(rows));
}

// --------------------------------------------------------------------------------- single steps

std::string data_text(const StepResult& step) {
  return step.precision == "float32" ? step.data : join(step.data, "; precision ", step.precision);
}

std::string steps_table(const Results& results, const std::string& data) {
  std::vector<Cells> lines;
  for (const auto& step : results.steps)
    if (data_text(step) == data)
      lines.push_back({step.model, method_text(step), grouped(step.parameters), grouped(step.batch),
                       grouped(step.parts), fmt::format("{:.1f}", step.seconds),
                       fmt::format("{:.2f}", step.peak_bytes / 1e9)});
  return table_of({"model", "method", "parameters", "batch", "parts", "seconds", "peak GB"}, lines);
}

// One table for each data.
std::string steps_text(const Results& results) {
  std::set<std::string> all_data;
  for (const auto& step : results.steps) all_data.insert(data_text(step));
  std::string text;
  for (const auto& data : all_data)
    text += "One step of training; data: " + data + ".\n\n" + steps_table(results, data);
  return text;
}

// ------------------------------------------------------------------------------------- commands

// The texts of all runs, without repetition.
template <typename Text>
std::string of_runs(const RowResult& row, const Text& text) {
  Cells parts;
  for (const auto& run : row.runs) {
    auto part = text(run);
    if (part.empty()) part = "–";
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "static 218 s" where trainings of a row differ in the placement of digits.
std::string seconds_text(const RowResult& row, const RunResult& run) {
  std::string placement;
  for (const auto& figure : row.figures)
    if (figure.run == run.name) placement = figure.name.substr(0, figure.name.find('_'));
  return (row.runs.size() > 1 ? placement + " " : "") + grouped(run.seconds) + " s";
}

std::string cost_text(const RowResult& row) {
  const char* unit = row.figures.front().metric == "perplexity" ? " tokens, " : " images, ";
  return of_runs(row, [](const RunResult& run) { return grouped(run.seen); }) + unit +
         of_runs(row, [&](const RunResult& run) { return seconds_text(row, run); });
}

std::string origin_text(const RowResult& row) {
  return of_runs(row, [](const RunResult& run) { return run.machine; }) + "; " +
         of_runs(row, [](const RunResult& run) { return run.commit; });
}

struct CommandLine {
  std::string origin, text;
};

// Commands with the machine and commit above those that share them.
std::string commands_text(const Results& results) {
  std::vector<CommandLine> commands;
  for (const auto& row : results.rows)
    commands.push_back({origin_text(row), row.command + "  # " + cost_text(row)});
  for (const auto& step : results.steps)
    commands.push_back({step.machine + "; " + step.commit, step.command});
  std::string text, origin;
  for (const auto& command : commands) {
    if (command.origin != origin) text += "# " + command.origin + "\n";
    origin = command.origin;
    text += command.text + "\n";
  }
  return "<details><summary>Commands, machines and times</summary>\n\n```sh\n" + text +
         "```\n\n</details>\n";
}

}  // namespace

std::string markdown_figures(const Results& results) {
  return trainings_text(results) + steps_text(results);
}

std::string markdown_table(const Results& results) {
  return markdown_figures(results) + commands_text(results);
}

std::string markdown_summary(const Results& results) {
  std::string text;
  if (!results.rows.empty()) {
    const auto rows = best_trained(trained_rows(results));
    const auto shared = shared_cuts(rows);
    std::vector<Cells> labels;
    for (const auto& row : rows) labels.push_back({method_and_cuts(row, shared)});
    text = title_text(results, rows) + " " + cuts_text(shared) +
           figures_table({"method"}, std::move(labels), rows) +
           paragraph(open_text(rows) + difference_text(rows));
  }
  return without_last_line(text + steps_text(results));
}

std::string markdown_comparison(const std::string& option, const Results& results) {
  std::vector<TrainedRow> rows;
  std::vector<std::string> values;
  for (const auto& pair : pairs_differing_in(option, results)) {
    rows.insert(rows.end(), {pair.recipe, pair.changed});
    values.insert(values.end(), {pair.recipe_value, pair.changed_value});
  }
  ensure(!rows.empty(), "results of ", results.table, ": no rows differ in ", option, " alone");
  const auto shared = shared_cuts(rows);
  std::vector<Cells> labels;
  for (size_t r = 0; r < rows.size(); ++r)
    labels.push_back({method_and_cuts(rows[r], shared), values[r]});
  return without_last_line("The paper's figures are in brackets. " + cuts_text(shared) +
                           figures_table({"method", option}, std::move(labels), rows) +
                           paragraph(open_text(rows)));
}

}  // namespace translution::cli
