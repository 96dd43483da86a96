#pragma once

#include <optional>
#include <string>
#include <vector>

#include "translution/core/names.h"
#include "translution/data/options.h"
#include "translution/models/options.h"
#include "translution/train/options.h"

namespace translution::cli {

/// How much computing time to spend on a table of the paper.
enum class Budget { quick, desk, paper };

inline constexpr Named<Budget> kBudgets[] = {
    {Budget::quick, "quick", "minutes: small models on built-in data"},
    {Budget::desk, "desk", "hours on two cores: real data, fewer passes"},
    {Budget::paper, "paper", "the full recipe, as in configs/"},
};

/// The kind of data of a table.
enum class Subject { digits, images, text };

Subject subject_of(const ModelOptions& model);

/// How models are trained. A non-empty `architecture` replaces that of the row.
struct Recipe {
  DataOptions data;
  TrainOptions train;
  std::string architecture = {};
  Init init = Init::scaled;
};

/// The properties of data that a plan needs.
struct DataFacts {
  int64_t samples = 0;  ///< training samples: images, or windows of text
  int64_t evaluated = 0;
  int64_t channels = 1, classes = 0;
  std::vector<int64_t> image = {};
  int64_t vocabulary = 0;  ///< of text
};

/// The data of a recipe, described without reading it.
struct KnownData {
  const char *data, *name;  ///< "images:data/imagenet", "ImageNet-1K"
  DataFacts facts;
  const char* identity;  ///< replaces `data` in names of trainings; never changes
  const char* fetch;     ///< commands that fetch it; may be empty
};

/// Nothing for data that no recipe uses and for built-in data.
std::optional<KnownData> known_data(const std::string& data);

/// The recipe of a budget. That of Budget::paper is written by `translution configs`.
Recipe recipe_for(Budget budget, Subject subject);

}  // namespace translution::cli
