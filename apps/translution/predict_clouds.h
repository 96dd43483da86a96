#pragma once

#include <string>
#include <vector>

#include "translution/train/trained.h"

namespace translution::cli {

/// Prints the class or the number of each cloud in the files, as a table or as JSON.
void predict_clouds(const Trained& trained, const std::vector<std::string>& files, bool json);

}  // namespace translution::cli
