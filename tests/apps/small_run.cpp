#include "tests/apps/small_run.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "tests/apps/program.h"
#include "tests/support/process.h"

namespace translution {
namespace {

namespace fs = std::filesystem;

const std::string kSmall =
    "train --data digits:64 --canvas 42 --model vit-6x48x3x96/21 --method alpha_translution "
    "--dropout 0.1 --train-on dynamic --placement fresh --batch 16 --steps 12 --save-every 2 "
    "--log-every 3 --eval-limit 32 ";

std::string fresh_directory(const std::string& name) {
  const std::string path = ::testing::TempDir() + "train_test." + std::to_string(getpid()) + name;
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

// Outlives the tests that use it.
struct Undisturbed {
  Undisturbed() : path(fresh_directory(".undisturbed")) {
    const auto outcome = run(kSmall + "--threads 1 --out " + path);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  ~Undisturbed() { fs::remove_all(path); }

  const std::string path;
};

// Or on the number of processes.
bool depends_on_time(const std::string& name) {
  return name == "samples_per_s" || name == "tokens_per_s" || name == "gflops" ||
         name == "share_of_sgemm" || name == "share_of_bf16" || name == "input_share" ||
         name == "resident_mib" || name == "seconds_per_step" || name == "read_mib_per_step" ||
         name == "written_mib_per_step" || name == "peak_resident_mib" ||
         name == "sent_mib_per_step";
}

}  // namespace

SmallRun::SmallRun() : directory_(fresh_directory("")) {}
SmallRun::~SmallRun() { fs::remove_all(directory_); }

std::string SmallRun::train(const std::string& name, const std::string& more) const {
  const bool threads = more.find("--threads") != std::string::npos;
  return kSmall + (threads ? "" : "--threads 1 ") + more + " --out " + path(name);
}

std::string SmallRun::trained(const std::string& name, const std::string& more) const {
  const auto outcome = run(train(name, more));
  EXPECT_EQ(outcome.code, 0) << more << ": " << outcome.err;
  return path(name);
}

const std::string& undisturbed() {
  static const Undisturbed run;
  return run.path;
}

std::string weights_of(const std::string& run) {
  int code = 0;
  const auto sum = testing::output_of_command(
      "sha256sum < " + run + "/checkpoints/last/model.safetensors", &code);
  EXPECT_EQ(code, 0) << run;
  return sum;
}

std::vector<Metrics> log_of(const std::string& run) {
  auto log = read_metrics(run + "/metrics.jsonl");
  for (auto& moment : log) {
    auto& values = moment.values;
    values.erase(std::remove_if(values.begin(), values.end(),
                                [](const auto& value) { return depends_on_time(value.first); }),
                 values.end());
  }
  return log;
}

void expect_undisturbed(const std::string& run) {
  EXPECT_EQ(weights_of(run), weights_of(undisturbed()));
  const auto log = log_of(run), expected = log_of(undisturbed());
  ASSERT_EQ(log.size(), expected.size());
  for (size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(log[i].step, expected[i].step);
    EXPECT_EQ(log[i].split, expected[i].split);
    EXPECT_EQ(log[i].values, expected[i].values) << log[i].split << " at step " << log[i].step;
  }
}

}  // namespace translution
