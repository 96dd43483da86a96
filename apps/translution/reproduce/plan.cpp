#include "apps/translution/reproduce/plan.h"

#include <algorithm>
#include <set>

#include "apps/translution/reproduce/cuts.h"
#include "translution/core/error.h"
#include "translution/data/batch_order.h"
#include "translution/data/settings.h"
#include "translution/io/checksum.h"
#include "translution/models/cost.h"
#include "translution/models/settings.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr int64_t kCanvasPatch = 12;
constexpr uint64_t kMaxSeeds = 100;
constexpr const char* kImageSize = "image-size";

// ---------------------------------------------------------------------------------- the rows

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// "3-5" as {3, 5} and "3" as {3, 3}.
std::optional<std::pair<int64_t, int64_t>> range_in(const std::string& word) {
  const auto dash = std::min(word.find('-'), word.size());
  const std::string first = word.substr(0, dash),
                    last = dash < word.size() ? word.substr(dash + 1) : first;
  if (!is_number(first) || !is_number(last)) return std::nullopt;
  return std::pair{SettingValue{"rows", first}.number(), SettingValue{"rows", last}.number()};
}

// Does the word name row `number`?
bool names_row(const std::string& word, size_t number, const ModelOptions& model) {
  const auto here = static_cast<int64_t>(number);
  if (const auto range = range_in(word)) return range->first <= here && here <= range->second;
  return word == model.name() || word == name_of(kMethods, model.position.method);
}

bool fits(const std::string& word, const PaperTable& table) {
  const auto range = range_in(word);
  return !range || (range->first >= 1 && range->first <= range->second &&
                    range->second <= static_cast<int64_t>(table.rows.size()));
}

std::vector<size_t> chosen_rows(const PaperTable& table, const std::vector<std::string>& words) {
  std::vector<size_t> numbers;
  std::vector<bool> used(words.size());
  for (size_t number = 1; number <= table.rows.size(); ++number) {
    bool chosen = words.empty();
    for (size_t w = 0; w < words.size(); ++w)
      if (names_row(words[w], number, table.rows[number - 1].model)) chosen = used[w] = true;
    if (chosen) numbers.push_back(number);
  }
  for (size_t w = 0; w < words.size(); ++w)
    require(used[w] && fits(words[w], table), "rows: '", words[w], "' is none of the ",
            table.rows.size(), " rows of ", table.name,
            "; expected numbers such as 1,3-5, a model or a method");
  return numbers;
}

// --------------------------------------------------------------------------------- the models

// Alpha-Translution without relative channels is attention without positions: tables that contain
// either share its training.
Position simplest(const Position& position) {
  if (position.method != Method::alpha_translution || position.relative_dim > 0) return position;
  Position none;
  none.method = Method::self_attention_no_pos;
  return none;
}

// The row's model adapted to the recipe and the data. Images of another size than the paper's have
// as many patches; those on a canvas have patches of 12x12, unless the table compares patch sizes.
ModelOptions fitted(const PaperTable& table, const PaperRow& row, const Recipe& recipe,
                    const DataFacts& facts) {
  ModelOptions model = row.model;
  model.position = simplest(model.position);
  model.init = recipe.init;
  model.precision = recipe.train.precision;
  if (!recipe.architecture.empty()) {
    const char* family = model.family == Family::gpt ? "gpt-" : "vit-";
    model.architecture = ModelOptions::named(family + recipe.architecture).architecture;
  }
  if (model.input_embedding == model.position.embeds_input()) model.input_embedding.reset();
  if (model.family == Family::gpt) {
    require(facts.vocabulary > 0, table.name, ": expected text: --data tokens:DIR, got images");
    model.vocabulary = facts.vocabulary;
    return model;
  }
  require(facts.vocabulary == 0, table.name, ": expected images, got text");
  if (facts.image != model.image_size)
    model.patch_size = on_canvas(recipe.data) && table.name != "imagenet"
                           ? kCanvasPatch
                           : model.patch_size * facts.image.front() / model.image_size.front();
  model.image_size = facts.image;
  model.channels = facts.channels;
  model.classes = facts.classes;
  return model;
}

// ------------------------------------------------------------------------------ the trainings

// "static_dynamic": trained on static digits, tested on moved digits.
struct Source {
  bool moved;
  std::string set, metric;
};

Source source_of(const std::string& figure, const DataOptions& data) {
  const auto line = figure.find('_');
  if (line == std::string::npos) return {true, on_canvas(data) ? "dynamic" : "val", figure};
  return {figure.substr(0, line) == "dynamic", figure.substr(line + 1), "top1"};
}

std::string readable_name(const Training& training) {
  auto name = training.model.name() + "-" + name_of(kMethods, training.model.position.method);
  if (on_canvas(training.data))
    name += std::string("-") + name_of(kPlacements, training.data.train_on);
  name += join("-seed", training.train.seed);
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

// The name does not depend on where known data is stored.
std::string name_of_training(const Training& training) {
  const auto known = known_data(training.data.data);
  std::string all;
  for (const auto& [name, text] : training.texts())
    all += name + "=" + (known && name == "data" ? known->identity : text) + "\n";
  return readable_name(training) + "-" + checksum_of(all).substr(0, 6);
}

Training training_for(const PlanRow& row, const Recipe& recipe, bool moved,
                      const DataFacts& facts) {
  Training training{"", row.model, recipe.data, recipe.train, 0};
  training.train.seed = training.data.seed = row.seed;
  training.train.batch = std::min(training.train.batch, facts.samples);
  training.data.train_on = moved ? Placement::moved : Placement::still;
  if (!moved) training.data.fresh = false;  // static digits have one placement
  training.data.eval_on =
      moved ? std::vector{Placement::moved} : std::vector{Placement::still, Placement::moved};
  training.data.length = row.model.length;
  if (row.model.family == Family::vit)
    training.data.image_size = static_cast<int>(row.model.image_size.front());
  const int64_t per_epoch =
      BatchOrder(facts.samples, training_order(training.train.batch, 0)).batches_per_epoch();
  training.steps =
      training.train.steps > 0 ? training.train.steps : training.train.epochs * per_epoch;
  training.name = name_of_training(training);
  return training;
}

size_t index_of(Training training, std::vector<Training>& trainings) {
  const auto same = [&](const Training& other) { return other.name == training.name; };
  const auto found = std::find_if(trainings.begin(), trainings.end(), same);
  const auto index = static_cast<size_t>(found - trainings.begin());
  if (found == trainings.end()) trainings.push_back(std::move(training));
  return index;
}

// Trainings on moved images run first, for all rows, so methods can be compared early.
void add_figures(const Recipe& recipe, const DataFacts& facts, ReproducePlan& plan) {
  for (const bool moved : {true, false})
    for (auto& row : plan.rows)
      for (const auto& [name, paper] : row.paper.results) {
        const auto source = source_of(name, recipe.data);
        if (source.moved != moved) continue;
        const size_t training = index_of(training_for(row, recipe, moved, facts), plan.trainings);
        row.figures.push_back({name, paper, training, source.set, source.metric});
      }
}

// The training on moved images, to which all options apply. It comes first in a plan.
const Training& main_training(const PlanRow& row, const ReproducePlan& plan) {
  size_t first = row.figures.front().training;
  for (const auto& figure : row.figures) first = std::min(first, figure.training);
  return plan.trainings[first];
}

// Restores the order of the paper.
void sort_figures(PlanRow& row) {
  const auto column_of = [&](const Figure& figure) {
    size_t column = 0;
    while (row.paper.results[column].first != figure.name) ++column;
    return column;
  };
  std::sort(row.figures.begin(), row.figures.end(),
            [&](const Figure& a, const Figure& b) { return column_of(a) < column_of(b); });
}

void check_image_size(const std::vector<int64_t>& size, const DataOptions& data) {
  require(kind_of(data.data) == DataKind::images,
          "--image-size: expected image folders (--data images:DIR), got ", data.data);
  require(size.front() > 0 && size.front() == size.back(),
          "--image-size: expected a square, as image folders are cropped to one, got ",
          times(size));
}

Recipe recipe_of(const PlanRequest& request, const PaperTable& table) {
  const auto& model = table.rows.front().model;
  auto recipe = recipe_for(request.budget, subject_of(model));
  if (!request.data.empty()) recipe.data.data = request.data;
  set_all(data_settings(), request.settings, recipe.data, "--");
  set_all(train_settings(), request.settings, recipe.train, "--");
  ModelOptions chosen = model;
  chosen.init = recipe.init;
  set_all(settings_named(model_settings(), {"init", kImageSize}), request.settings, chosen, "--");
  recipe.init = chosen.init;
  if (request.settings.count(kImageSize) > 0) check_image_size(chosen.image_size, recipe.data);
  if (request.settings.count("epochs") > 0) {
    require(request.settings.count("steps") == 0,
            "--epochs and --steps do not go together; leave one of them out");
    recipe.train.steps = 0;
  }
  recipe.train.check();
  recipe.data.length = model.length;
  recipe.data.image_size = static_cast<int>(chosen.image_size.front());
  return recipe;
}

void check_seeds(const std::vector<uint64_t>& seeds) {
  require(!seeds.empty() && seeds.size() <= kMaxSeeds, "seeds: expected 1 to ", kMaxSeeds,
          " seeds, got ", seeds.size());
  require(std::set(seeds.begin(), seeds.end()).size() == seeds.size(),
          "seeds: expected different seeds");
}

void check_data(const PaperTable& table, const DataOptions& data) {
  const bool moves = table.rows.front().results.front().first.find('_') != std::string::npos;
  require(!moves || on_canvas(data), table.name,
          " compares static and moved digits: expected --data digits, mnist:DIR or idx:DIR, "
          "got ",
          data.data);
  require(!data.fresh || on_canvas(data),
          "--placement fresh is for images on a canvas: digits, mnist:DIR or idx:DIR, got ",
          data.data);
}

// -------------------------------------------------------------------------------- the forecast

// The share of the matrix product rate that a training step reaches. Measured in docs/kernels.md;
// bfloat16 with AVX512_BF16.
double known_share(const ModelOptions& model) {
  if (model.precision == Precision::bf16)
    return model.position.method == Method::translution ? 0.75 : 0.5;
  switch (model.position.method) {
    case Method::translution:
      return 0.87;
    case Method::alpha_translution:
      return 0.67;
    default:
      return 0.77;
  }
}

}  // namespace

SettingTexts Training::texts() const {
  auto all = model_texts(model);
  for (auto& entry : texts_of(data_settings(), data, WhichSettings::named)) all.push_back(entry);
  for (auto& entry : texts_of(train_settings(), train, WhichSettings::named)) all.push_back(entry);
  all.emplace_back("seed", std::to_string(train.seed));
  return all;
}

DataOptions data_of(const PlanRequest& request) {
  return recipe_of(request, paper_table(request.table)).data;
}

ReproducePlan make_plan(const PlanRequest& request, const DataFacts& facts) {
  check_seeds(request.seeds);
  ReproducePlan plan{paper_table(request.table), request.budget, {}, {}};
  const auto recipe = recipe_of(request, plan.table);
  check_data(plan.table, recipe.data);
  for (const size_t number : chosen_rows(plan.table, request.rows))
    for (const uint64_t seed : request.seeds) {
      const auto& paper = plan.table.rows[number - 1];
      plan.rows.push_back({number, paper, fitted(plan.table, paper, recipe, facts), seed, {}, {}});
      plan.rows.back().model.check();
    }
  add_figures(recipe, facts, plan);
  for (auto& row : plan.rows) {
    sort_figures(row);
    row.cuts = cuts_of(row.paper.model, main_training(row, plan), facts);
  }
  return plan;
}

Forecast forecast(const Training& training, const DataFacts& facts, double rate, double share) {
  const auto& train = training.train;
  const auto cost =
      model_cost(training.model, (train.batch + train.accumulate - 1) / train.accumulate);
  if (share == 0) share = known_share(training.model);
  const int64_t per_epoch =
      BatchOrder(facts.samples, training_order(train.batch, 0)).batches_per_epoch();
  const int64_t every = train.eval_every > 0 ? train.eval_every : per_epoch;
  const auto evaluations = static_cast<double>((training.steps + every - 1) / every);
  const auto sets = static_cast<double>(training.data.eval_on.size());
  const double evaluated =
      sets * static_cast<double>(facts.evaluated) + static_cast<double>(training.data.hold_out);
  const double flops = static_cast<double>(training.steps * train.batch) * cost.training_flops +
                       evaluations * evaluated * cost.forward_flops;
  return {flops / (1e9 * rate * share), cost.training_bytes};
}

}  // namespace translution::cli
