#include "apps/translution/reproduce/cuts.h"

#include "translution/core/error.h"
#include "translution/core/units.h"

namespace translution::cli {

using namespace detail;

namespace {

struct Cuts {
  std::vector<std::string> texts;

  void instead(const std::string& ours, const std::string& theirs, const std::string& of) {
    if (ours != theirs) texts.push_back(join(ours, " instead of ", theirs, of));
  }
  void part(int64_t ours, int64_t full, const char* of) {
    if (ours != full) texts.push_back(join(grouped(ours), " of ", grouped(full), of));
  }
};

void add_data(const Training& training, const DataFacts& facts, const KnownData& paper,
              Cuts& cuts) {
  const char* samples = facts.vocabulary > 0 ? " windows" : " images";
  const auto known = known_data(training.data.data);
  if (training.data.data == paper.data)
    cuts.part(facts.samples, paper.facts.samples, samples);
  else
    cuts.texts.push_back(join(known ? known->name : "data " + training.data.data, " with ",
                              grouped(facts.samples), samples, " instead of ", paper.name));
  const Augment full = recipe_for(Budget::paper, Subject::images).data.augment;
  if (kind_of(training.data.data) == DataKind::images && training.data.augment != full)
    cuts.texts.push_back(join("augment ", name_of(kAugments, training.data.augment), " instead of ",
                              name_of(kAugments, full)));
  if (training.data.eval_limit > 0)
    cuts.texts.push_back(join("evaluated on ", grouped(facts.evaluated)));
}

void add_model(const ModelOptions& paper, const ModelOptions& model, Cuts& cuts) {
  cuts.instead(model.name(), paper.name(), "");
  if (model.family == Family::gpt) {
    cuts.instead(grouped(model.vocabulary), grouped(paper.vocabulary), " distinct tokens");
    return;
  }
  cuts.instead(times(model.image_size), times(paper.image_size), " pixels");
  cuts.instead(grouped(model.classes), grouped(paper.classes), " classes");
}

void add_length(const TrainOptions& full, const Training& training, Cuts& cuts) {
  if (full.steps > 0)
    cuts.part(training.steps, full.steps, " steps");
  else if (training.train.steps > 0)
    cuts.texts.push_back(
        join(grouped(training.steps), " steps instead of ", full.epochs, " passes"));
  else
    cuts.part(training.train.epochs, full.epochs, " passes");
}

void add_settings(const TrainOptions& full, const TrainOptions& train, Cuts& cuts) {
  for (const auto& group : train_settings())
    for (const auto& setting : group.settings) {
      const auto& name = setting.name;
      if (setting.of_the_run || name == "steps" || name == "epochs" || name == "seed") continue;
      const auto ours = setting.text(train), theirs = setting.text(full);
      if (ours != theirs) cuts.texts.push_back(join(name, " ", ours, " instead of ", theirs));
    }
}

}  // namespace

KnownData paper_data(Subject subject) {
  return *known_data(recipe_for(Budget::paper, subject).data.data);
}

std::vector<std::string> cuts_of(const ModelOptions& paper, const Training& training,
                                 const DataFacts& facts) {
  const Subject subject = subject_of(paper);
  const auto full = recipe_for(Budget::paper, subject);
  Cuts cuts;
  add_data(training, facts, paper_data(subject), cuts);
  if (training.data.fresh != full.data.fresh) cuts.texts.push_back("new placement in every pass");
  add_model(paper, training.model, cuts);
  if (training.model.init != full.init)
    cuts.texts.push_back(join("init ", name_of(kInits, training.model.init), " instead of ",
                              name_of(kInits, full.init)));
  add_length(full.train, training, cuts);
  add_settings(full.train, training.train, cuts);
  return cuts.texts;
}

}  // namespace translution::cli
