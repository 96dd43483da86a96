// Training whose tables are split between processes: the same as in one process, to rounding;
// checkpoints, faults, what is refused, bytes and memory.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>

#include "tests/apps/launched_run.h"
#include "tests/support/study.h"
#include "translution/core/position.h"
#include "translution/distributed/rank_group.h"
#include "translution/distributed/world.h"
#include "translution/io/safetensors.h"
#include "translution/train/checkpoint.h"

namespace translution {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr const char* kLast = "/checkpoints/last";
constexpr double kRounding = 1e-4;  // of weights after a few steps of 1e-3

class OffsetParallel : public LaunchedRun {
 protected:
  // A training in `data` groups of `offset` processes.
  std::string split(int data, int offset, const std::string& arguments,
                    const std::string& name) const {
    const auto parallel =
        " --parallel data=" + std::to_string(data) + ",offset=" + std::to_string(offset);
    return trained_together(data * offset, arguments + parallel, name);
  }
  // Not a launcher's child: nobody but the others notices that it is lost.
  std::unique_ptr<Started> rank(int rank, const std::string& arguments, int port,
                                const std::string& before = "") const {
    return std::make_unique<Started>("train " + arguments + " --out " + path("run"),
                                     before + " MASTER_PORT=" + std::to_string(port) +
                                         " WORLD_SIZE=2 RANK=" + std::to_string(rank));
  }
};

NamedTensors weights_in(const std::string& run) {
  return load_safetensors(run + kLast + "/model.safetensors").tensors;
}

// The largest difference of two trainings' weights.
double difference(const std::string& run, const std::string& expected) {
  const auto ours = weights_in(run), theirs = weights_in(expected);
  EXPECT_EQ(ours.size(), theirs.size());
  double largest = 0;
  for (const auto& [name, tensor] : theirs) {
    const double found = (ours.at(name) - tensor).abs().max().item<double>();
    largest = std::max(largest, std::isnan(found) ? 1e9 : found);
  }
  return largest;
}

void expect_near_log(const std::string& run, const std::string& expected_run) {
  const auto log = log_of(run), expected = log_of(expected_run);
  ASSERT_EQ(log.size(), expected.size());
  for (size_t i = 0; i < log.size(); ++i) {
    ASSERT_EQ(log[i].split, expected[i].split);
    for (size_t v = 0; v < log[i].values.size(); ++v)
      EXPECT_NEAR(log[i].values[v].second, expected[i].values[v].second,
                  1e-4 * (1 + std::abs(expected[i].values[v].second)))
          << log[i].values[v].first << " of " << log[i].split << " at step " << log[i].step;
  }
}

// The values of this name in the log.
std::vector<double> values_of(const std::string& run, const std::string& wanted) {
  std::vector<double> values;
  for (const auto& metrics : read_metrics(run + "/metrics.jsonl"))
    for (const auto& [name, value] : metrics.values)
      if (name == wanted) values.push_back(value);
  EXPECT_FALSE(values.empty());
  return values;
}

TEST_F(OffsetParallel, EveryMethodEndsWithTheWeightsOfOneProcessToRounding) {
  const std::set<std::string> with_tables = {"translution", "alpha_translution", "convolution"};
  for (const auto& method : names_of(kMethods)) {
    // The others repeat work; `make stress` runs them on all splits.
    const bool all = with_tables.count(method) == 1 || repeats(0, 1) == 1;
    const auto splits = all ? std::vector<std::pair<int, int>>{{1, 2}, {1, 4}, {2, 2}}
                            : std::vector<std::pair<int, int>>{{2, 2}};
    const auto arguments = kVit + "--clip 0.1 --shards 2 --steps 3 --method " + method;
    const auto alone = trained_by(0, arguments, "alone");
    for (const auto& [data, offset] : splits) {
      SCOPED_TRACE(method + " on " + std::to_string(data) + "x" + std::to_string(offset));
      const auto run = split(data, offset, arguments, "split");
      EXPECT_LT(difference(run, alone), kRounding);
      expect_near_log(run, alone);
      fs::remove_all(run);
    }
    fs::remove_all(alone);
  }
}

// Absolute and shared slots, roles, text, clipping by layer and bfloat16.
TEST_F(OffsetParallel, OtherTablesAndOptionsAgree) {
  const auto vit = kVit + "--shards 2 --steps 2 ";
  const std::string others[] = {
      vit + "--method translution --encoding absolute --clip-by layer --clip 0.1",
      vit + "--method translution --roles kv --qkv-bias on",
      vit + "--method alpha_translution --precision bf16",
      vit + "--method alpha_translution --sharing direction --radius 1 --accumulate 2",
      kSteps +
          "--method translution --data text --model gpt-2x24x3x48-16 --dropout 0.1 "
          "--eval-limit 40 --shards 2 --steps 2"};
  for (const auto& arguments : others) {
    SCOPED_TRACE(arguments);
    const auto alone = trained_by(0, arguments, "alone");
    const auto run = split(1, 3, arguments, "split");
    EXPECT_LT(difference(run, alone), kRounding);
    expect_near_log(run, alone);
    for (const auto& path : {alone, run}) fs::remove_all(path);
  }
}

// Each row is where it belongs: without a learning rate the weights are the initial ones.
TEST_F(OffsetParallel, InitialWeightsAndFilesAreThoseOfOneProcess) {
  for (const std::string method : {"translution", "alpha_translution", "convolution"}) {
    SCOPED_TRACE(method);
    const auto arguments = kVit + "--lr 0 --steps 1 --method " + method;
    const auto alone = trained_by(0, arguments, "alone." + method);
    const auto run = split(1, 3, arguments, "split." + method);
    EXPECT_EQ(weights_of(run), weights_of(alone));
    for (const std::string file : {"/model.safetensors", "/optimizer.safetensors"}) {
      const auto ours = load_safetensors_header(run + kLast + file),
                 theirs = load_safetensors_header(alone + kLast + file);
      EXPECT_EQ(format_safetensors_header(ours), format_safetensors_header(theirs));
    }
  }
}

TEST_F(OffsetParallel, ACheckpointIsEvaluatedByOneProcess) {
  const auto run = split(1, 2, kVit + "--method translution --steps 4", "run");
  const auto results =
      nlohmann::json::parse(translution::run("eval " + run + " --json").out)["results"];
  for (const auto& metrics : log_of(run)) {
    if (metrics.step != 4 || metrics.split == "train") continue;
    for (const auto& [name, value] : metrics.values)
      EXPECT_NEAR(results[metrics.split][name].get<double>(), value, 1e-6) << name;
  }
}

TEST_F(OffsetParallel, ResumesWithAnotherSplit) {
  const auto arguments = kVit + "--method translution --shards 2 --steps ";
  const auto expected = trained_by(0, arguments + "8", "expected");
  split(2, 2, arguments + "2", "run");
  split(1, 2, arguments + "4 --resume auto", "run");
  trained_by(0, arguments + "6 --resume auto", "run");
  const auto run = split(1, 4, arguments + "8 --resume auto", "run");
  EXPECT_LT(difference(run, expected), kRounding);
  const auto losses = losses_of(run), expected_losses = losses_of(expected);
  ASSERT_EQ(losses.size(), expected_losses.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected_losses[i], 1e-4);
}

TEST_F(OffsetParallel, StartsFromTheWeightsOfAnotherRun) {
  const auto first = trained_by(0, kVit + "--method self_attention --steps 2", "first");
  const auto arguments = kDigits + kSteps + "--method translution --steps 2 --from " + first;
  EXPECT_LT(difference(split(1, 2, arguments, "split"), trained_by(0, arguments, "alone")),
            kRounding);
}

TEST_F(OffsetParallel, AnInterruptStopsAllAtTheSameStep) {
  const Started launched(
      launch(2, kVit + "--method translution --parallel offset=2 --steps 100000", "run"));
  ASSERT_TRUE(wait_for([&] { return fs::exists(path("run") + kLast); }));
  for (const pid_t rank : children_of(launched.id())) {
    ::kill(rank, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // steps of the others
  }
  const auto outcome = launched.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(lines_with(outcome.err, "continue with --resume auto").size(), 1u) << outcome.err;
}

// A rank is lost inside a forward or backward pass, most of the time in a sum.
TEST_F(OffsetParallel, ALostRankStopsTheOthersAndTheRunContinues) {
  const auto arguments =
      kVit + "--method translution --parallel offset=2 --rank-timeout 3 --resume auto --steps ";
  const int port = next_port();
  const auto zero = rank(0, arguments + "100000", port), one = rank(1, arguments + "100000", port);
  ASSERT_TRUE(wait_for([&] { return fs::exists(path("run") + kLast); }));
  const auto moment = Clock::now();
  one->send(SIGKILL);
  const auto outcome = zero->wait();
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - moment).count(), 3 + 2);
  EXPECT_EQ(outcome.code, 1);
  const auto errors = lines_with(outcome.err, "translution: ");
  ASSERT_EQ(errors.size(), 1u) << outcome.err;
  EXPECT_THAT(errors[0], HasSubstr("translution: rank 1"));
  EXPECT_THAT(errors[0], HasSubstr("--resume auto continues"));
  one->wait();
  const auto steps = list_steps(path("run") + "/checkpoints").front();
  trained_together(2, arguments + std::to_string(steps + 2), "run");
  EXPECT_EQ(log_of(path("run")).back().step, steps + 2);
}

// Each rank writes about 110 rows of a checkpoint, so this is the second one.
TEST_F(OffsetParallel, AFullDiskOfARankLeavesTheCheckpointBefore) {
  const auto arguments = kVit + "--method translution --parallel offset=2 --resume auto --steps 6";
  const auto expected = trained_together(2, arguments, "expected");
  const int port = next_port();
  const auto zero = rank(0, arguments, port),
             one = rank(1, arguments, port, with_fault("enospc:150"));
  EXPECT_THAT(zero->wait().err, HasSubstr("rank 1 failed: "));
  EXPECT_THAT(one->wait().err, HasSubstr("No space left on device; free some space"));
  EXPECT_EQ(list_steps(path("run") + "/checkpoints"), std::vector<int64_t>{2});
  trained_together(2, arguments, "run");
  EXPECT_EQ(weights_of(path("run")), weights_of(expected));
}

TEST_F(OffsetParallel, AWrongSplitIsRefused) {
  const WrongCall alone[] = {
      {"--parallel data=2,offset=2",
       "parallel: expected 4 processes for data=2,offset=2, got 1; start as many, or change "
       "--parallel"},
      {"--parallel offset=2",
       "parallel: expected 2 processes for data=1,offset=2, got 1; start as many, or change "
       "--parallel"},
      {"--parallel data=2,rows=1", "--parallel: expected data=D,offset=P, got 'data=2,rows=1'"},
      {"--parallel offset=0", "--parallel offset: expected 1 to 65536, got 0"},
      {"--parallel offset=2 --offload . --clip 0",
       "offload: expected offset=1 in parallel, got offset=2"}};
  for (const auto& [arguments, message] : alone) {
    const auto call = "train " + std::string(arguments) + " --out " + path("wrong");
    expect_refused({call.c_str(), message});
  }
  const std::pair<int, WrongCall> launched[] = {
      {3,
       {"--data text --model gpt-2x24x3x48-16 --method translution --sharing direction --radius 0 ",
        "parallel: expected at most offset=2 for gpt-2x24x3x48-16, got offset=3; "
        "backbone.blocks.0.attention.query has 2 slots"}},
      {2,
       {"--data digits-points:64 --model cloud-tiny --method translution",
        "parallel: expected a model of images or text for offset=2, got cloud-tiny; use "
        "offset=1"}}};
  for (const auto& [ranks, call] : launched) {
    const auto parallel = " --parallel offset=" + std::to_string(ranks);
    const auto outcome = run(launch(ranks, call.arguments + parallel, "wrong"));
    EXPECT_NE(outcome.code, 0);
    EXPECT_THAT(outcome.err, HasSubstr(call.message));
  }
  const auto port = next_port();
  const auto zero = rank(0, kVit + "--steps 1 --parallel offset=2", port),
             one = rank(1, kVit + "--steps 1", port);
  for (const auto* started : {&zero, &one})
    EXPECT_EQ((*started)->wait().err,
              "translution: rank 1 has parallel data=2,offset=1, rank 0 has data=1,offset=2; start "
              "all ranks with the same program, options and data\n");
}

// ------------------------------------------------------------------------------ bytes and memory

// What all TCP sockets of this process have sent.
int64_t bytes_of_sockets() {
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    tcp_info info{};
    socklen_t size = sizeof info;
    const int socket = std::stoi(entry.path().filename());
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
        size > offsetof(tcp_info, tcpi_bytes_sent))
      bytes += static_cast<int64_t>(info.tcpi_bytes_sent);
  }
  return bytes;
}

// Sums of many floats over groups of a world of four, as in data=2,offset=2: what rank 0 counts,
// and what its sockets do.
TEST_F(OffsetParallel, CountsTheBytesOfItsSockets) {
  constexpr int64_t kCount = 1 << 20;
  WorldPlace place;
  place.size = place.local_size = 4;
  place.port = next_port();
  std::vector<pid_t> children;
  for (int rank = 3; rank >= 0; --rank) {
    place.rank = rank;
    if (rank > 0) children.push_back(fork());
    if (rank > 0 && children.back() != 0) continue;
    World world(place, {});
    auto& rows = world.group({rank / 2 * 2, rank / 2 * 2 + 1});
    auto& columns = world.group({rank % 2, rank % 2 + 2});
    auto numbers = at::full({kCount}, rank + 1, at::kFloat);
    const int64_t before = bytes_of_sockets(), counted = world.bytes_sent();
    rows.tree_sum({numbers});
    columns.tree_sum({numbers});
    const auto sent = static_cast<double>(bytes_of_sockets() - before);
    const auto count = static_cast<double>(world.bytes_sent() - counted);
    const bool right = numbers.eq(10).all().item<bool>();
    world.leave();
    if (rank > 0) _exit(right ? 0 : 1);
    EXPECT_TRUE(right);
    EXPECT_EQ(count, 2 * 4 * kCount);  // twice 2 (2 - 1) / 2 of four bytes each
    EXPECT_NEAR(sent / count, 1, 0.01);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

// The formula in docs/scaling.md for a model with 5 tokens, 24 channels and 3 heads at batch 16,
// whose last layer has one query row.
TEST_F(OffsetParallel, SendsTheBytesOfTheFormula) {
  const double n = 5, c = 24, h = 3, batch = 16;
  struct Sent {
    const char* method;
    int offset;
    double share;  // 2 (P - 1) / P
    double numbers;
  };
  const Sent all[] = {
      {"translution", 2, 1, (h * n * n + 2 * n * c + h * n) + (h * n + c + h + c + 2 * n * c)},
      {"translution", 4, 1.5, (h * n * n + 2 * n * c + h * n) + (h * n + c + h + c + 2 * n * c)},
      {"alpha_translution", 2, 1, (2 * h * n * n + 4 * n * c) + (2 * h * n + 2 * c + 2 * n * c)},
      {"convolution", 2, 1, 2 * n * c + (c + n * c)}};
  for (const auto& [method, offset, share, numbers] : all) {
    const auto run = split(1, offset, kVit + "--steps 1 --method " + std::string(method), "run");
    EXPECT_NEAR(values_of(run, "sent_mib_per_step").at(0) * (1 << 20), share * 4 * batch * numbers,
                128)  // the loss, the norm, whether to stop
        << method << " on " << offset;
    fs::remove_all(run);
  }
}

// 532 slots with three matrices of 96 x 96, gradients and moments: 224 MiB.
TEST_F(OffsetParallel, HoldsAShareOfTheTables) {
  const std::string arguments =
      "--data digits:8 --eval-limit 8 --method translution --model vit-1x96x3x96/7 --batch 2 "
      "--steps 1 --log-every 1 --threads 1";
  const double tables = 4.0 * 4 * 3 * 532 * 96 * 96 / (1 << 20);
  const double whole = values_of(trained_by(0, arguments, "whole"), "resident_mib").at(0),
               half = values_of(split(1, 2, arguments, "half"), "resident_mib").at(0);
  EXPECT_NEAR((whole - half) / tables, 0.5, 0.1);
}

}  // namespace
}  // namespace translution
