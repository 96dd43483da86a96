#pragma once

#include <string>

#include "translution/reproduce/results.h"

namespace translution {

/// The table with the paper's figures and ours side by side, as Markdown: what was trained, how it
/// was cut, where, and below the table the command of every row. Figures of a training that is not
/// finished say at which step they were measured; methods that lie within a point of each other
/// with one seed are named.
std::string markdown_table(const Results& results);

/// Puts tables into a document, between lines "<!-- results NAME -->" and "<!-- end of results
/// -->". What stands between is replaced. Refuses a document with a name that no results have, or
/// with a mark that is not closed; `path` is for messages.
std::string fill_in(const std::string& document, const std::vector<Results>& all,
                    const std::string& path);

}  // namespace translution
