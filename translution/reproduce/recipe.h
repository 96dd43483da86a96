#pragma once

#include <string>

#include "translution/core/names.h"
#include "translution/data/sources.h"
#include "translution/models/options.h"
#include "translution/train/options.h"

namespace translution {

/// How much is spent on a table of the paper.
enum class Budget { quick, desk, paper };

inline constexpr Named<Budget> kBudgets[] = {
    {Budget::quick, "quick", "minutes: small models on data that the program brings along"},
    {Budget::desk, "desk", "hours on two cores: real data, fewer passes"},
    {Budget::paper, "paper", "the whole recipe, as configs/ has it"},
};

/// What the models of a table learn from.
enum class Subject { digits, images, text };

Subject subject_of(const ModelOptions& model);

/// How models are trained. `architecture` is taken instead of a row's own, unless it is empty.
struct Recipe {
  DataOptions data;
  TrainOptions train;
  std::string architecture = {};
  Init init = Init::scaled;
};

/// The recipe of a budget; for Budget::paper, what `translution configs` writes.
Recipe recipe_for(Budget budget, Subject subject);

}  // namespace translution
