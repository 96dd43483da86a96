#pragma once

#include <string>
#include <vector>

#include "apps/translution/reproduce/plan.h"

namespace translution::cli {

/// What the paper's models learn from.
KnownData paper_data(Subject subject);

/// Everything in which a training differs from the whole recipe for the paper's model on the
/// paper's data, in words: "5 of 20 passes", "84x84 instead of 224x224 pixels".
std::vector<std::string> cuts_of(const ModelOptions& paper, const Training& training,
                                 const DataFacts& facts);

}  // namespace translution::cli
