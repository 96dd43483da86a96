#pragma once

#include <string>
#include <vector>

#include "apps/translution/reproduce/plan.h"

namespace translution::cli {

/// The data of the paper.
KnownData paper_data(Subject subject);

/// All differences between a training and the full recipe for the paper's model on the paper's
/// data, in words: "5 of 20 passes", "84x84 instead of 224x224 pixels".
std::vector<std::string> cuts_of(const ModelOptions& paper, const Training& training,
                                 const DataFacts& facts);

}  // namespace translution::cli
