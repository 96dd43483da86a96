#pragma once

#include <string>
#include <vector>

#include "apps/translution/reproduce/results.h"

namespace translution::cli {

/// Replaces the lines between a mark and "<!-- end of results -->". The marks are
///   <!-- results TABLE -->         all tables and commands
///   <!-- summary TABLE -->         the best-trained rows
///   <!-- compare TABLE OPTION -->  the rows that differ in one option
/// Throws if there are no results of that table or a mark is not closed; `path` is for messages.
std::string fill_in(const std::string& document, const std::vector<Results>& all,
                    const std::string& path);

}  // namespace translution::cli
