#include "translution/train/trainer.h"

#include <gmock/gmock.h>

#include "tests/models/tiny_models.h"
#include "tests/support/temp_dir.h"
#include "translution/nn/generator.h"
#include "translution/train/trained.h"

namespace translution::testing {
namespace {

using ::testing::DoubleEq;
using ::testing::Pointwise;

ModelOptions tiny_model() {
  auto model = tiny_vit();
  model.image_size = {28, 28};
  model.patch_size = 14;
  model.channels = 1;
  model.classes = 10;
  return model;
}

double value_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [known, value] : metrics.values)
    if (known == name) return value;
  throw std::runtime_error("the log has no " + name);
}

// The stop is requested during the backward pass and noticed between two blocks.
TEST(Trainer, DiscardsAStepThatAStopInterrupts) {
  const TempDir directory;
  DataOptions data;
  data.data = "digits:16";
  data.canvas = {};
  Trainer::Setup setup;
  setup.directory = directory.path();
  setup.options.batch = 4;
  setup.options.steps = 3;
  Network network(tiny_model());
  const auto source = open_data(data);
  std::atomic<bool> stop{false};
  int backward = 0;
  for (auto& parameter : network.module().parameters())
    parameter.register_hook([&](const torch::Tensor&) { stop = ++backward > 3; });
  Trainer trainer(network, source, setup);
  EXPECT_FALSE(trainer.run(stop));
  EXPECT_EQ(trainer.step(), 0);
  EXPECT_LT(backward, static_cast<int>(network.module().parameters().size()));
  EXPECT_FALSE(network.backbone()->between_blocks) << "the hook was not removed";
}

at::Tensor process_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

// The weights after three steps with dropout; calls `after_step` after each.
std::vector<torch::Tensor> trained(const std::function<void()>& after_step) {
  const TempDir directory;
  DataOptions data;
  data.data = "digits:16";
  data.canvas = {};
  Trainer::Setup setup;
  setup.directory = directory.path();
  setup.options.batch = 4;
  setup.options.steps = 3;
  setup.events.step = [&](int64_t, const Metrics&) { after_step(); };
  auto model = tiny_model();
  model.dropout = 0.3;
  Network network(model, seeded_generator(1));
  const auto source = open_data(data);
  const std::atomic<bool> stop{false};
  EXPECT_TRUE(Trainer(network, source, setup).run(stop));
  return network.module().parameters();
}

TEST(Trainer, DoesNotUseTheGeneratorOfTheProcess) {
  const auto before = process_state();
  const auto alone = trained([] {});
  EXPECT_TRUE(torch::equal(process_state(), before));
  const auto disturbed = trained([] { torch::rand({3}); });
  EXPECT_FALSE(torch::equal(process_state(), before));
  for (size_t n = 0; n < alone.size(); ++n) EXPECT_TRUE(torch::equal(alone[n], disturbed[n])) << n;
}

// The machine becomes slower and then faster during the training.
TEST(Trainer, LogsTheShareOfTheCurrentMachineRate) {
  const TempDir directory;
  DataOptions data;
  data.data = "digits:16";
  data.canvas = {};
  Trainer::Setup setup;
  setup.directory = directory.path();
  setup.options.batch = 4;
  setup.options.steps = 3;
  setup.options.log_every = 1;
  std::vector<double> rates = {40, 10, 160}, found;
  setup.product_gflops = [&rates, calls = 0]() mutable { return rates.at(calls++); };
  setup.events.metrics = [&](const Metrics& metrics) {
    if (metrics.split == "train")
      found.push_back(value_of(metrics, "gflops") / value_of(metrics, "share_of_sgemm"));
  };
  Network network(tiny_model());
  const auto source = open_data(data);
  Trainer(network, source, setup).run(false);
  EXPECT_THAT(found, Pointwise(DoubleEq(), rates));
}

TEST(Train, RefusesAnEmptyDirectoryBeforeOpeningTheData) {
  RunOptions run;
  run.data.data = "mnist:/no/such/folder";
  EXPECT_THAT([&] { train(run); },
              ::testing::ThrowsMessage<std::invalid_argument>(
                  "train: expected a directory for the run, got an empty name"));
}

RunOptions run_of(const std::string& directory, Method method) {
  RunOptions run;
  run.model = ModelOptions::named("vit-1x12x2x20x8/14");
  run.model.position.method = method;
  run.data.data = "digits:16";
  run.data.canvas = {};
  run.data.eval_limit = 4;
  run.train.batch = 8;
  run.train.steps = 2;
  run.directory = directory;
  return run;
}

TEST(Train, StartsFromTheWeightsOfAnotherRun) {
  const TempDir directory;
  const auto plain = run_of(directory / "plain", Method::self_attention);
  EXPECT_TRUE(train(plain).done);
  auto full = run_of(directory / "full", Method::translution);
  full.from = plain.directory;
  full.model.input_embedding = true;
  full.train.lr = 0;
  EXPECT_TRUE(train(full).done);
  const auto images = torch::rand({3, 1, 28, 28});
  const auto before = load_trained(plain.directory).network->forward(images);
  const auto after = load_trained(full.directory).network->forward(images);
  EXPECT_LT((before - after).abs().max().item<double>(), 1e-5);

  const auto start = plan_start(full, open_run(full));
  ASSERT_TRUE(start.has_value());
  EXPECT_TRUE(start->takes_head);
  EXPECT_EQ(start->model.classes.size(), 10u);
  EXPECT_EQ(start->model.step, 2);
  full.resume = true;
  EXPECT_FALSE(plan_start(full, open_run(full)).has_value());
  EXPECT_EQ(weights_path(full), full.directory);
}

}  // namespace
}  // namespace translution::testing
