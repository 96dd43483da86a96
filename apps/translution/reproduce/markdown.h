#pragma once

#include <string>

#include "apps/translution/reproduce/results.h"

namespace translution::cli {

/// Our figures with the paper's in brackets, as Markdown: one table for each way of training, with
/// the cuts above it, then the single steps. Figures of several seeds are given as mean ± half of
/// their range. Unfinished figures name the step at which they were measured. Letters mark figures
/// whose order is open.
std::string markdown_figures(const Results& results);

/// The same, followed by a folded block with the commands, machines, commits and times.
std::string markdown_table(const Results& results);

/// The figures in short: each row of the paper's table once, as best trained.
std::string markdown_summary(const Results& results);

/// The rows that were trained with two values of `option` and are otherwise equal, side by side.
/// Throws if there are none.
std::string markdown_comparison(const std::string& option, const Results& results);

}  // namespace translution::cli
