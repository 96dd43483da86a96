#include "apps/translution/reproduce/document.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "apps/translution/reproduce/markdown.h"
#include "translution/core/error.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kEnd = "<!-- end of results -->";

struct Mark {
  std::string kind, table, option;
};

// "<!-- results mnist -->".
std::optional<Mark> parse_mark(const std::string& line) {
  std::istringstream words(line);
  std::string begin, end;
  Mark mark;
  words >> begin >> mark.kind >> mark.table;
  if (mark.kind == "compare") words >> mark.option;
  words >> end;
  const bool known = mark.kind == "results" || mark.kind == "summary" || mark.kind == "compare";
  if (begin != "<!--" || end != "-->" || !known || line.rfind(begin, 0) != 0) return std::nullopt;
  return mark;
}

std::string text_for(const Mark& mark, const Results& results) {
  if (mark.kind == "summary") return markdown_summary(results);
  if (mark.kind == "compare") return markdown_comparison(mark.option, results);
  return markdown_table(results);
}

const Results& find_table(const std::string& table, const std::vector<Results>& all,
                          const std::string& where) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Results& r) { return r.table == table; });
  ensure(found != all.end(), where, ": there are no results of that name");
  return *found;
}

}  // namespace

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
    const auto mark = parse_mark(line);
    if (!mark) continue;
    ensure(!open, path, ": '", line, "' before the end of the results of ", mark->table);
    open = mark;
    text +=
        "\n" + text_for(*mark, find_table(mark->table, all, join(path, ": '", line, "'"))) + "\n";
  }
  ensure(!open, path, ": the results are not closed with '", kEnd, "'");
  return text;
}

}  // namespace translution::cli
