#include "translution/train/trainer.h"

#include <c10/util/ScopeExit.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "translution/core/error.h"
#include "translution/core/random.h"
#include "translution/data/class_names.h"
#include "translution/models/cost.h"
#include "translution/nn/generator.h"
#include "translution/train/clip.h"
#include "translution/train/device.h"
#include "translution/train/offload_step.h"
#include "translution/train/resident.h"

namespace translution {

using namespace detail;

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kOrder = 1, kDropout = 2;  // random streams
constexpr int64_t kBatchesAhead = 4;          // that the loader loads

// The shards of a batch that this process trains on.
BatchShards shards_of(const RankGrid& ranks, const TrainOptions& options, int64_t samples) {
  const int64_t size = ranks.data_size(), all = options.shards > 0 ? options.shards : size;
  require(all % size == 0, "shards: expected 1, 2, 4, … ",
          ranks.is_split() ? "offset groups" : "processes", " up to ", all,
          ", the number of shards, got ", size);
  require(all <= samples, options.shards > 0 ? "shards" : "WORLD_SIZE", ": expected at most ",
          samples, ", the samples of a batch, got ", all);
  return {all, all / size * ranks.data_index(), all / size};
}

// Sums during backward. Nothing if there is nobody to sum with, if a tree of shards comes before,
// or if backward itself sums over an offset group: one thread exchanges at a time.
std::unique_ptr<GradientExchange> exchange_of(const RankGrid& ranks, const BatchShards& shards,
                                              const std::vector<torch::Tensor>& parameters) {
  auto& group = ranks.data_group();
  if (group.size() == 1 || shards.count > 1 || ranks.is_split()) return nullptr;
  return std::make_unique<GradientExchange>(
      parameters, [&group](const std::vector<torch::Tensor>& sums) { group.tree_sum(sums); },
      RankGroup::kBucket);
}

// Thrown when a stop is requested. Autograd propagates a std::exception.
struct Interrupted : std::exception {};

void interrupt_if(const std::atomic<bool>& stop) {
  if (stop) throw Interrupted();
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::pair<std::string, torch::Tensor>> named_parameters_of(
    const torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> parameters;
  for (const auto& item : module.named_parameters())
    parameters.emplace_back(item.key(), item.value());
  return parameters;
}

// Moves the network first: moments are allocated on the device of its parameters.
Network& on_device(Network& network, const std::string& device) {
  network.to(find_device(device));
  return network;
}

std::vector<torch::Tensor> tensors_of(
    const std::vector<std::pair<std::string, torch::Tensor>>& parameters) {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) tensors.push_back(tensor);
  return tensors;
}

std::string samples_text(const std::vector<int64_t>& samples) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(4, samples.size()); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(samples[i]);
  return text + (samples.size() > 4 ? ", …" : "");
}

}  // namespace

Trainer::Trainer(Network& network, const DataSource& data, Setup setup)
    : network_(on_device(network, setup.options.device)),
      data_(data),
      setup_(std::move(setup)),
      options_(setup_.options),
      parameters_(named_parameters_of(network.module())),
      optimizer_(tensors_of(parameters_), adamw_options(options_),
                 setup_.offload ? AdamW::Memory::lean : AdamW::Memory::ready),
      world_(setup_.world),
      ranks_(world_, options_.parallel),
      tables_(network.table_rows()),
      shards_(shards_of(ranks_, options_, std::min(options_.batch, data.train->size()))),
      exchange_(exchange_of(ranks_, shards_, tensors_of(parameters_))),
      store_(world_->is_first() ? std::make_unique<CheckpointStore>(
                                      setup_.directory + "/checkpoints", options_.keep)
                                : nullptr),
      per_epoch_(steps_per_epoch(data, options_)),
      total_(total_steps(data, options_)),
      origin_(setup_.origin) {
  options_.check();
  if (setup_.offload) setup_.offload->attach(optimizer_.state);
  for (const auto& [name, text] :
       setup_.config)  // check early: the first checkpoint may be hours away
    require(is_utf8(text), name, ": expected text in UTF-8, got '", escape_bytes(text), "'");
  require(is_utf8(origin_.path), "from: expected a path in UTF-8, got '",
          escape_bytes(origin_.path), "'");
}

double Trainer::epochs_done() const {
  return static_cast<double>(state_.step) / static_cast<double>(per_epoch_);
}

// True every `every` steps (0: after every epoch), and at the end.
bool Trainer::is_due(int64_t every) const {
  return state_.step == total_ || state_.step % (every > 0 ? every : per_epoch_) == 0;
}

void Trainer::log_metrics(const Metrics& metrics) {
  if (log_) log_->add(metrics);
  if (setup_.events.metrics) setup_.events.metrics(metrics);
}

void Trainer::require_finite_value(double number, const char* what, const BatchPlan& plan) const {
  if (std::isfinite(number)) return;
  const auto steps = list_steps(setup_.directory + "/checkpoints");
  const std::string last = steps.empty() ? "there is no checkpoint yet"
                                         : join("the last good checkpoint is ", setup_.directory,
                                                "/checkpoints/", checkpoint_name(steps.front()));
  throw std::runtime_error(join("training stopped: ", what, " is ", number, " in step ",
                                state_.step + 1, " (epoch ", plan.epoch + 1, ", batch ",
                                plan.index + 1, ": samples ", samples_text(plan.samples), "); ",
                                last, "; try a lower --lr or a longer --warmup"));
}

LoadedBatch Trainer::next_batch(Loader& loader, BatchPlan& plan) {
  const auto start = Clock::now();
  auto loaded = *loader.next();
  waited_ += seconds_since(start);
  plan.epoch = loaded.plan.epoch, plan.index = loaded.plan.index;
  plan.samples.insert(plan.samples.end(), loaded.plan.samples.begin(), loaded.plan.samples.end());
  return loaded;
}

// Dropout draws different numbers in each shard.
at::Generator Trainer::dropout_of_shard(int64_t shard) {
  const auto step = static_cast<uint64_t>(state_.step), s = static_cast<uint64_t>(shard);
  Random random = shard == 0 ? Random({options_.seed, step, kDropout})
                             : Random({options_.seed, step, kDropout, s});
  return seeded_generator(random.bits(), network_.device());
}

// Adds the gradients of this process's shards to the tree, and all their samples to the plan.
// Returns the share of each shard of the batch in the loss; 0 for the shards of other processes.
torch::Tensor Trainer::add_shards(Loader& loader, GradientTree& tree, BatchPlan& plan) {
  auto losses = torch::zeros({shards_.all}, torch::kDouble);
  const int64_t samples = batch_samples();
  const auto part_done = [&](int64_t parts) {
    if (exchange_ && parts + 1 == options_.accumulate) exchange_->start();
  };
  for (int64_t shard = shards_.first; shard < shards_.first + shards_.count; ++shard) {
    const auto loaded = next_batch(loader, plan);
    part_done(0);
    const double loss = add_gradients(network_, loaded.batch, samples, step_options(options_),
                                      dropout_of_shard(shard), part_done);
    losses[shard] = loss;
    if (!std::isfinite(loss)) break;
    if (!exchange_) tree.add_shard();
  }
  return losses;
}

// The sum of the values over all ranks. Throws if a rank was interrupted.
torch::Tensor Trainer::shared(const torch::Tensor& values, bool interrupted) {
  const bool stops = interrupted || (offset_sum_ && offset_sum_->requested());
  const auto flag = torch::full({1}, stops ? 1.0 : 0.0, values.options());
  auto all = torch::cat({ranks_.counted_once(values).flatten(), flag});
  world_->sum(all);
  if (all[-1].item<double>() > 0) throw Interrupted();
  return all.narrow(0, 0, values.numel()).view_as(values);
}

StepOptions Trainer::options_of_step() const {
  auto options = step_options(options_);
  options.last_norm = state_.last_norm;
  return options;
}

SplitGradients Trainer::split_gradients() {
  if (!ranks_.is_split()) return {};
  SplitGradients split;
  for (const auto& [name, tensor] : parameters_) split.is_split.push_back(tables_.count(name) == 1);
  split.sum = [this](std::vector<double>& numbers) { ranks_.sum_in_order(numbers); };
  return split;
}

// The gradients of all shards of the batch, added as a tree, then the update of the weights.
// Returns early, without changing a weight, if the loss or the norm is not finite.
StepOutcome Trainer::step_in_memory(Loader& loader, BatchPlan& plan) {
  optimizer_.zero_grad();
  GradientTree tree(tensors_of(parameters_));
  auto losses = torch::zeros({shards_.all}, torch::kDouble);
  bool interrupted = false;
  try {
    losses = add_shards(loader, tree, plan);
  } catch (const Interrupted&) {
    interrupted = true;
  }
  if (exchange_) exchange_->finish();  // also after an interruption: the others wait
  losses = shared(losses, interrupted);
  StepOutcome outcome;
  for (int64_t shard = 0; shard < shards_.all; ++shard)
    outcome.loss += losses[shard].item<double>();
  if (!std::isfinite(outcome.loss)) return outcome;
  if (!exchange_) ranks_.data_group().tree_sum(tree.finish());
  outcome.norm = clip_and_update(network_, optimizer_, options_of_step(), split_gradients());
  return outcome;
}

// One process and one shard: the weights are updated inside backward.
StepOutcome Trainer::step_in_files(Loader& loader, BatchPlan& plan) {
  const auto loaded = next_batch(loader, plan);
  return offload_step({network_, optimizer_, *setup_.offload, state_.step}, loaded.batch,
                      options_of_step(), dropout_of_shard(0));
}

// Returns the gradients' norm.
double Trainer::take_step(Loader& loader) {
  optimizer_.options.lr = learning_rate(options_, state_.step, total_);
  BatchPlan plan;
  const auto outcome = setup_.offload ? step_in_files(loader, plan) : step_in_memory(loader, plan);
  require_finite_value(outcome.loss, "the loss", plan);
  require_finite_value(outcome.norm, "the norm of the gradients", plan);
  state_.loss_sum += outcome.loss;
  ++state_.loss_count;
  ++state_.step;
  state_.last_norm = outcome.norm;
  return outcome.norm;
}

void Trainer::log_training(double norm) {
  const auto& model = network_.options();
  const double samples = static_cast<double>(samples_) / seconds_;
  const double steps = static_cast<double>(samples_) / static_cast<double>(batch_samples());
  const double sent_mib = static_cast<double>(sent_) / (1 << 20);
  const double gflops = samples * model_cost(whole(model)).training_flops / 1e9;
  Metrics metrics{state_.step, epochs_done(), "train", {}};
  metrics.values = {{"loss", state_.loss_sum / static_cast<double>(state_.loss_count)},
                    {"lr", optimizer_.options.lr},
                    {"gradient_norm", norm}};
  if (model.family == Family::gpt)
    metrics.values.emplace_back("tokens_per_s", samples * static_cast<double>(model.length));
  else
    metrics.values.emplace_back("samples_per_s", samples);
  metrics.values.emplace_back("gflops", gflops);
  if (setup_.product_gflops)
    metrics.values.emplace_back(share_metric(model.precision),
                                gflops / world_->size() / setup_.product_gflops());
  metrics.values.emplace_back("input_share", waited_ / seconds_);
  metrics.values.emplace_back("resident_mib", resident_mib());
  if (world_->size() > 1) metrics.values.emplace_back("sent_mib_per_step", sent_mib / steps);
  if (setup_.offload)
    for (auto& value : usage_.take(seconds_)) metrics.values.push_back(std::move(value));
  log_metrics(metrics);
  latest_ = metrics;
}

void Trainer::begin_log_line() {
  state_.loss_sum = 0, state_.loss_count = 0;
  samples_ = 0, seconds_ = 0, waited_ = 0, sent_ = 0;
}

// The figures of this rank's batches of an evaluation set: every size-th one.
torch::Tensor Trainer::evaluate_on(const EvaluationSet& set) {
  auto& between_blocks = network_.backbone()->between_blocks;
  const auto usual = between_blocks;
  const auto reset = c10::make_scope_exit([&] { between_blocks = usual; });
  if (setup_.offload)
    between_blocks = [&] {
      usual();
      setup_.offload->release_all();
    };
  return evaluate_batches(network_, set.dataset,
                          {options_.batch, options_.workers, target_unit(data_),
                           ranks_.data_index(), ranks_.data_size()});
}

// The results on all evaluation sets.
std::vector<Evaluation> Trainer::evaluations() {
  std::vector<Evaluation> results;
  for (const auto& set : data_.evaluation) {
    bool interrupted = false;
    auto figures = no_figures(*set.dataset, options_.batch);
    try {
      figures = evaluate_on(set);
    } catch (const Interrupted&) {
      interrupted = true;
    }
    results.push_back(evaluation_of(shared(figures, interrupted)));
  }
  return results;
}

// Returns true if the score on the first evaluation set is the best so far. Logs all sets or none.
bool Trainer::evaluate_all() {
  state_.evaluation_pending = true;
  const auto results = evaluations();
  state_.evaluation_pending = false;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& result = results[i];
    Metrics metrics{state_.step, epochs_done(), data_.evaluation[i].name, {{"loss", result.loss}}};
    if (result.of_classes)
      metrics.values.insert(metrics.values.end(), {{"top1", result.top1}, {"top5", result.top5}});
    else if (result.of_numbers)
      metrics.values.emplace_back("mae", result.mae);
    else
      metrics.values.emplace_back("perplexity", result.perplexity());
    log_metrics(metrics);
  }
  if (results.empty()) return false;
  const auto& first = results.front();
  const double score = first.of_classes ? first.top1 : -first.loss;
  const bool best = !state_.evaluated || score > state_.best;
  if (best) state_.best = score;
  state_.evaluated = true;
  return best;
}

void Trainer::train_on(const std::atomic<bool>& stop) {
  if (state_.evaluation_pending) save(evaluate_all());
  const uint64_t order_seed = Random({options_.seed, kOrder}).bits();
  auto order = training_order(options_.batch, order_seed, state_.step / per_epoch_,
                              state_.step % per_epoch_);
  order.shards = shards_;
  Loader loader(data_.train, {order, options_.workers, kBatchesAhead * shards_.count});
  while (state_.step < total_) {
    if (world_->size() == 1) interrupt_if(stop);  // several ranks stop together, in shared()
    const auto start = Clock::now();
    const int64_t sent = world_->bytes_sent();
    const double norm = take_step(loader);
    sent_ += world_->bytes_sent() - sent;
    samples_ += batch_samples();
    seconds_ += seconds_since(start);
    usage_.add_step();
    if (is_due(options_.log_every)) {
      if (world_->is_first()) log_training(norm);
      begin_log_line();
    }
    const bool best = is_due(options_.eval_every) && evaluate_all();
    if (is_due(options_.save_every) || best) save(best);
    if (setup_.events.step) setup_.events.step(state_.step, latest_);
  }
}

bool Trainer::run(const std::atomic<bool>& stop) {
  const bool done = run_until(stop);
  if (world_->is_first()) write_metrics_csv(setup_.directory);
  return done;
}

bool Trainer::run_until(const std::atomic<bool>& stop) {
  if (world_->is_first())
    log_ = std::make_unique<MetricsLog>(setup_.directory, state_.step > 0 ? state_.step : -1,
                                        !state_.evaluation_pending);
  network_.module().train();
  auto& between_blocks = network_.backbone()->between_blocks;
  if (ranks_.is_split())
    offset_sum_ =
        std::make_unique<OffsetSum>(network_.options().share.group, ranks_.offset_group(), stop);
  const auto& stops = offset_sum_ ? offset_sum_->agreed() : stop;
  between_blocks = [&stops] { interrupt_if(stops); };
  const auto reset = c10::make_scope_exit([&] { between_blocks = nullptr, offset_sum_.reset(); });
  try {
    train_on(stop);
    return true;
  } catch (const Interrupted&) {
    if (saved_ != state_.step || state_.evaluation_pending) save(/*is_best=*/false);
    return false;
  }
}

}  // namespace translution
