#include "translution/train/run.h"

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "translution/core/error.h"
#include "translution/core/random.h"
#include "translution/data/class_names.h"
#include "translution/data/settings.h"
#include "translution/io/atomic_file.h"
#include "translution/io/checksum.h"
#include "translution/models/memory_check.h"
#include "translution/models/settings.h"
#include "translution/nn/generator.h"
#include "translution/ops/products.h"
#include "translution/ops/runtime.h"
#include "translution/train/checkpoint.h"
#include "translution/train/config.h"
#include "translution/train/data_fit.h"
#include "translution/train/device.h"
#include "translution/train/offload.h"
#include "translution/train/offload_check.h"
#include "translution/train/rank_facts.h"
#include "translution/train/trainer.h"

namespace translution {

using namespace detail;

namespace {

// The settings that must not change when a run is resumed.
SettingTexts run_texts(const RunOptions& options) {
  auto texts = model_texts(options.model);
  for (auto& entry : texts_of(data_settings(), options.data, WhichSettings::learned))
    texts.push_back(entry);
  texts.emplace_back("seed", std::to_string(options.train.seed));
  texts.emplace_back("batch", std::to_string(options.train.batch));
  texts.emplace_back("shards", std::to_string(options.train.shards));
  return texts;
}

// The values of these settings in checkpoints that are older than the settings.
std::map<std::string, std::string> run_texts_before() {
  auto texts = texts_before(data_settings());
  texts.merge(texts_before(train_settings()));
  return texts;
}

std::shared_ptr<World> world_of(const RunOptions& options) {
  return options.world ? options.world : std::make_shared<World>();
}

// Refuses to train if a rank has other options, data or weights than rank 0.
void compare_ranks(const RunOptions& options, const DataSource& data, Network& network,
                   int64_t steps_done) {
  if (world_of(options)->size() == 1) return;
  auto facts = options.facts;
  for (const auto& texts :
       {run_texts(options), rank_facts(options.train, data, network, steps_done)})
    facts.insert(facts.end(), texts.begin(), texts.end());
  options.world->require_same(facts);
}

// What the ranks must agree on before they exchange anything else: who owns what, and whether they
// load a checkpoint together.
void agree_on_parallel(const RunOptions& options) {
  const auto world = world_of(options);
  const auto& parallel = options.train.parallel;
  if (world->size() > 1)
    world->require_same({{"parallel", parallel.of(world->size()).text()},
                         {"resume", name_of(kSwitch, options.resume)}});
}

// Refuses a step that needs more memory than this machine has for its processes.
void check_memory(const RunOptions& options, int64_t samples) {
  const auto world = world_of(options);
  const auto& train = options.train;
  const int64_t groups = train.parallel.of(world->size()).data;
  const int64_t batch = std::min(train.batch, samples), parts = train.accumulate;
  const int64_t shards = train.shards > 0 ? train.shards : groups;
  const int64_t shard = (batch + shards - 1) / shards;
  auto model = options.model;
  model.share = train.parallel.share(world->rank());
  require_memory_to_train(
      model, (shard + parts - 1) / parts, "lower --batch, or raise --accumulate",
      {std::max<int64_t>(shards / groups, 1), world->size(), world->local_size()});
}

void write_config(const RunOptions& options, const std::string& from) {
  std::vector<std::string> comments;
  if (!options.comment.empty()) comments.push_back(options.comment);
  std::vector<ConfigSection> sections = {{"model", model_texts(options.model)},
                                         {"data", texts_of(data_settings(), options.data)},
                                         {"train", texts_of(train_settings(), options.train)}};
  if (!from.empty()) sections.push_back({"start", {{"from", from}}});
  write_file_atomically(options.directory + "/config.toml", format_config(comments, sections));
}

bool has_checkpoint_to_resume(const RunOptions& options) {
  return options.resume && !list_steps(options.directory + "/checkpoints").empty();
}

// Decides whether the head is taken: its classes must be those of the data.
void plan_head(RunStart& start, const DataSource& data) {
  const auto& before = start.model.classes;
  const int64_t classes = start.model.options.classes;
  const auto now = static_cast<int64_t>(data.classes.size());
  const auto difference = before.empty() ? "" : class_difference(before, data.classes);
  start.takes_head = classes == now && difference.empty();
  if (start.takes_head && start.model.options.predicts_number()) return;
  if (classes != now)
    start.head = join("the data has ", now, now == 1 ? " class" : " classes", ", ",
                      start.model.path, " has ", classes);
  else if (!difference.empty())
    start.head = join("the classes are not those of ", start.model.path, ": ", difference);
  else if (before.empty())
    start.head = join(start.model.path, " has no class names; its ", classes,
                      " classes must be those of the data, in the same order");
}

// Sets the weights of the network if the run starts from others. These are freed on return, before
// the optimizer is made.
Origin start_network(Network& network, const RunOptions& options, const DataSource& data) {
  const auto start = plan_start(options, data);
  if (!start) return {options.from, {}};
  const auto& path = start->model.path;
  const auto stored = load_described(path);
  start_from(network, stored.options, stored.tensors, path, start->takes_head);
  return {options.from, std::filesystem::is_directory(path)
                            ? find_checkpoint(path).manifest.model.checksum
                            : checksum_of_file(path)};
}

// The machine's rate of matrix products, measured again after a minute: on shared machines the rate
// changes during a long training.
class CurrentRate {
 public:
  explicit CurrentRate(Precision precision) : precision_(precision) {}

  double gflops() {
    const auto now = Clock::now();
    if (!gflops_ || now - measured_ > std::chrono::minutes(1)) {
      gflops_ = ProductRate(precision_, runtime().threads()).best_gflops();
      measured_ = now;
    }
    return *gflops_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Precision precision_;
  std::optional<double> gflops_;
  Clock::time_point measured_;
};

// The first file in the directory that a run would overwrite; empty if there is none.
std::string existing_run_file(const std::string& directory) {
  for (const char* name : {"metrics.jsonl", "metrics.csv", "config.toml"})
    if (std::filesystem::exists(directory + "/" + name)) return name;
  return "";
}

// Null without --offload.
std::shared_ptr<Offload> open_offload(const RunOptions& options) {
  if (options.train.offload.empty()) return {};
  const auto offload = std::make_shared<Offload>(options.train.offload, options.model);
  const auto& found = offload->found();
  if (options.resume && found.updating && options.events.message)
    options.events.message(
        join("offload: step ", found.step + 1, " was interrupted in ", options.train.offload,
             "; its files are filled again ",
             has_checkpoint_to_resume(options) ? "from the last checkpoint" : "with new weights"));
  return offload;
}

}  // namespace

int64_t steps_per_epoch(const DataSource& data, const TrainOptions& options) {
  return BatchOrder(data.train->size(), training_order(options.batch, 0)).batches_per_epoch();
}

int64_t total_steps(const DataSource& data, const TrainOptions& options) {
  return options.steps > 0 ? options.steps : options.epochs * steps_per_epoch(data, options);
}

void check_run_directory(const std::string& directory, bool resume) {
  require(!directory.empty(), "train: expected a directory for the run, got an empty name");
  const std::string checkpoints = directory + "/checkpoints", file = existing_run_file(directory);
  const bool saved = !list_steps(checkpoints).empty();
  const bool begun = never_saved(checkpoints);  // stopped before its first checkpoint: restarts
  require(resume || !(saved || (begun && !file.empty())), directory,
          " already holds a run; use --resume auto to continue it, or another --out");
  require(saved || begun || file.empty(), directory, " has ", file,
          " but no checkpoint to resume from, and a new run would overwrite it; move it away, or "
          "use another --out");
}

RunState run_state(const std::string& directory) {
  const auto steps = list_steps(directory + "/checkpoints");
  if (steps.empty()) return {};
  RunState state{steps.front()};
  try {
    state.evaluated = !find_checkpoint(directory).manifest.state.value("owes_evaluation", false);
  } catch (const std::runtime_error&) {  // damaged: Trainer::resume reports it
  }
  return state;
}

DataSource open_run(RunOptions& options) {
  const auto parallel = options.train.parallel.of(world_of(options)->size());
  auto& model = options.model;
  model.precision = options.train.precision;
  options.data.seed = options.train.seed;
  options.data.length = model.length;
  options.data.image_size = static_cast<int>(model.image_size.front());
  auto data = open_data(options.data);
  auto fixed_sizes = options.fixed_sizes;
  if (!options.from.empty()) fixed_sizes.emplace_back("vocabulary");  // that of the weights
  fit_to_data(model, data, options.data.data, fixed_sizes);
  plan_start(options, data);  // throws if the weights do not fit
  const int64_t batch = std::min(options.train.batch, data.train->size());
  const int64_t parts = options.train.accumulate;
  parallel.check(model);
  if (!options.train.offload.empty())
    check_offload(options, batch, (batch + parts - 1) / parts);
  else if (find_device(options.train.device).is_cpu())
    check_memory(options, data.train->size());
  return data;
}

std::string weights_path(const RunOptions& options) {
  return has_checkpoint_to_resume(options) ? options.directory : options.from;
}

std::optional<RunStart> plan_start(const RunOptions& options, const DataSource& data) {
  if (options.from.empty() || has_checkpoint_to_resume(options)) return {};
  RunStart start{find_model(options.from), {}};
  const bool is_text = options.model.family == Family::gpt;
  require(!is_text || data.vocabulary == start.model.vocabulary, options.data.data,
          ": expected a vocabulary of ", start.model.vocabulary, " as in ", options.from, ", got ",
          data.vocabulary, "; choose other data or other weights");
  if (!is_text) plan_head(start, data);
  start.weights =
      plan_warm_start(start.model.options, options.model, options.from, start.takes_head);
  return start;
}

TrainResult train(const RunOptions& options, const DataSource& data,
                  const std::atomic<bool>& stop) {
  check_run_directory(options.directory, options.resume);
  agree_on_parallel(options);
  const auto offload = open_offload(options);
  const auto random = seeded_generator(Random({options.train.seed}).bits());
  const auto world = world_of(options);
  auto model = options.model;
  model.share = options.train.parallel.share(world->rank());
  Network network = offload ? offload->build(random) : Network(model, random);
  const auto origin = start_network(network, options, data);
  CurrentRate rate(options.model.precision);
  Trainer trainer(network, data,
                  {options.train, options.directory, run_texts(options), run_texts_before(),
                   [&] { return rate.gflops(); }, options.events, origin, world, offload});
  if (options.resume) trainer.resume();
  if (offload) {
    offload->release_all();
    offload->whole_after(trainer.step());
  }
  // After resume(), which throws if the options do not fit the run.
  compare_ranks(options, data, network, trainer.step());
  if (world->is_first()) write_config(options, trainer.origin().path);
  if (options.events.started) options.events.started(trainer.step());
  const bool done = trainer.run(stop);
  world->leave();  // when rank 0 has saved
  return {done, trainer.step()};
}

TrainResult train(RunOptions options) {
  const std::atomic<bool> never{false};
  check_run_directory(options.directory,
                      options.resume);  // first, since opening the data can take long
  const auto data = open_run(options);
  return train(options, data, never);
}

}  // namespace translution
