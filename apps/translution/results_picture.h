#pragma once

#include <string>

#include "apps/translution/reproduce/results.h"

namespace translution::cli {

/// An SVG file with the losses of all trainings of a table, from the CSV files in the directory
/// `curves`. Empty if nothing was trained.
std::string results_picture(const Results& results, const std::string& curves);

}  // namespace translution::cli
