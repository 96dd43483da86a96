#pragma once

#include <string>

#include "apps/translution/reproduce/results.h"

namespace translution::cli {

/// The table with the paper's figures and ours side by side, as Markdown: what was trained, how it
/// was cut, where, and below the table the command of every row. Figures of a training that is not
/// finished say at which step they were measured; methods that lie within a point of each other
/// with one seed are named.
std::string markdown_table(const Results& results);

/// The same in short: without time, machines and commands.
std::string markdown_summary(const Results& results);

/// Puts tables into a document: what stands between "<!-- results NAME -->" and "<!-- end of
/// results
/// -->" is replaced by the table, and behind "<!-- summary NAME -->" by the short one. Refuses a
/// name that no results have, and a mark that is not closed; `path` is for messages.
std::string fill_in(const std::string& document, const std::vector<Results>& all,
                    const std::string& path);

}  // namespace translution::cli
