#pragma once

#include <string>

#include "apps/translution/reproduce/results.h"

namespace translution::cli {

/// The losses of all trainings of a table as an SVG file; their curves lie in `curves`. Empty where
/// nothing was trained.
std::string results_picture(const Results& results, const std::string& curves);

}  // namespace translution::cli
