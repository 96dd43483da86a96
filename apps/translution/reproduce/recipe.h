#pragma once

#include <optional>
#include <string>
#include <vector>

#include "translution/core/names.h"
#include "translution/data/options.h"
#include "translution/models/options.h"
#include "translution/train/options.h"

namespace translution::cli {

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

/// What a plan has to know about data.
struct DataFacts {
  int64_t samples = 0;  ///< to learn from: images, or windows of text
  int64_t evaluated = 0;
  int64_t channels = 1, classes = 0;
  std::vector<int64_t> image = {};
  int64_t vocabulary = 0;  ///< of text
};

/// The data of a recipe, known also where it was not fetched yet.
struct KnownData {
  const char *data, *name;  ///< "images:data/imagenet", "ImageNet-1K"
  DataFacts facts;
  const char* identity;  ///< stands for `data` in names of trainings; never changes
  const char* fetch;     ///< commands that fetch it; empty: there are none
};

/// Nothing for data that is no recipe's, or that the program makes itself.
std::optional<KnownData> known_data(const std::string& data);

/// The recipe of a budget; for Budget::paper, what `translution configs` writes.
Recipe recipe_for(Budget budget, Subject subject);

}  // namespace translution::cli
