// Training in several processes: the same bits, faults, and what is refused.

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <torch/utils.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "tests/apps/launched_run.h"
#include "tests/data/pictures.h"
#include "tests/support/study.h"
#include "translution/core/random.h"
#include "translution/distributed/connection.h"
#include "translution/distributed/rank_group.h"
#include "translution/distributed/world.h"
#include "translution/train/gradient_exchange.h"

namespace translution {
namespace {

namespace fs = std::filesystem;
using std::chrono::duration;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

class Distributed : public LaunchedRun {
 protected:
  // The run of every number of ranks has the weights and the log of one process.
  void expect_same_bits(const std::string& arguments, const std::vector<int>& all_ranks) const {
    const auto alone = trained_by(0, arguments, "alone");
    for (const int ranks : all_ranks) {
      SCOPED_TRACE(arguments + " on " + std::to_string(ranks));
      const auto name = "ranks" + std::to_string(ranks);
      expect_same_run(trained_by(ranks, arguments, name), alone);
      fs::remove_all(path(name));
    }
    fs::remove_all(alone);
  }
  static void expect_same_run(const std::string& run, const std::string& expected_run) {
    EXPECT_EQ(weights_of(run), weights_of(expected_run));
    const auto log = log_of(run), expected = log_of(expected_run);
    ASSERT_EQ(log.size(), expected.size());
    for (size_t i = 0; i < log.size(); ++i) {
      EXPECT_EQ(log[i].split, expected[i].split);
      EXPECT_EQ(log[i].values, expected[i].values) << log[i].split << " at step " << log[i].step;
    }
  }

  // A rank started by hand, with the variables of torchrun.
  std::unique_ptr<Started> rank(int rank, const std::string& more, const std::string& before = "",
                                int size = 2, int steps = 2) const {
    return std::make_unique<Started>(
        "train " + kVit + "--method self_attention --start-timeout 20 --steps " +
            std::to_string(steps) + " " + more + " --out " + path("hand"),
        "MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(port_) +
            " WORLD_SIZE=" + std::to_string(size) + " RANK=" + std::to_string(rank) + " " + before);
  }
  // Two ranks by hand: both stop with this message.
  void expect_both_refused(const std::string& first, const std::string& second,
                           const std::string& before, const std::string& message) {
    port_ = next_port();
    const auto zero = rank(0, first), one = rank(1, second, before);
    for (const auto& started : {&zero, &one}) {
      const auto outcome = (*started)->wait();
      EXPECT_EQ(outcome.code, 2);
      EXPECT_THAT(outcome.err, ::testing::MatchesRegex("translution: " + message + "\n"));
    }
    EXPECT_FALSE(fs::exists(path("hand") + "/metrics.jsonl"));
  }

  int port_ = next_port();
};

TEST(WithoutC10d, SeveralProcessesAreRefused) {
  if (has_c10d()) GTEST_SKIP() << "this build has c10d";
  EXPECT_EQ(run("train --out none", "RANK=0 WORLD_SIZE=2").err,
            "translution: rank 0: WORLD_SIZE is 2, but this program was built with a LibTorch "
            "without c10d and Gloo; use one process\n");
}

TEST_F(Distributed, TheBitsAreThoseOfOneProcess) {
  expect_same_bits(kVit + "--method alpha_translution --shards 8 --steps 3", {1, 2, 4, 8});
  expect_same_bits(kVit + "--method translution --shards 4 --accumulate 2 --steps 2", {4});
  expect_same_bits(kSteps +
                       "--method relative_bias --data text --model gpt-2x24x3x48-16 --dropout 0.1 "
                       "--eval-limit 40 --shards 2 --steps 2",
                   {2});
}

// Two classes of noise; `shade` is the brightness of the first image.
void write_images(const TemporaryFolder& folder, int shade) {
  for (const std::string split : {"train/", "val/"})
    for (int i = 0; i < 8; ++i)
      for (const char* name : {"a/", "b/"})
        folder.write(split + name + std::to_string(i) + ".png",
                     encode_png(i == 0 ? flat_image(32, 32, shade) : noise_image(32, 32)));
}

TEST_F(Distributed, CloudsAreDrawnTheSame) {
  expect_same_bits(kSteps +
                       "--data digits-points:200 --train-on clutter --neighbours 8 "
                       "--method alpha_translution --model cloud-tiny --dropout 0.1 "
                       "--shards 4 --steps 2",
                   {2});
}

TEST_F(Distributed, ImagesAreAugmentedAndMixedTheSame) {
  const TemporaryFolder folder;
  write_images(folder, 10);
  expect_same_bits(kSteps + "--data images:" + folder.path() +
                       " --method self_attention --model vit-2x24x3x48/14 --image-size 28 "
                       "--augment full --shards 4 --steps 2",
                   {2});
}

TEST_F(Distributed, OtherDataOnARankIsRefused) {
  const TemporaryFolder light, dark;
  write_images(light, 200);
  write_images(dark, 10);
  const std::string data =
      "--data images:. --model vit-2x24x3x48/14 --image-size 28 --augment none";
  const auto of = [&](int rank, const TemporaryFolder& folder) {
    return std::make_unique<Started>(
        "train " + data + " --method self_attention --steps 1 --out " + path("hand"),
        "-C " + folder.path() + " WORLD_SIZE=2 MASTER_PORT=" + std::to_string(port_) +
            " RANK=" + std::to_string(rank));
  };
  const auto zero = of(0, light), one = of(1, dark);
  for (const auto* started : {&zero, &one})
    EXPECT_THAT((*started)->wait().err,
                HasSubstr("rank 1 has checksum of the first, middle and last sample "));
}

TEST_F(Distributed, OneShardIsTheRunWithoutShards) {
  const auto arguments = kVit + "--method self_attention --steps 2";
  expect_same_run(trained_by(0, arguments + " --shards 1", "one"),
                  trained_by(0, arguments, "none"));
}

TEST_F(Distributed, WithoutShardsAnyNumberOfRanksTrains) {
  const auto run = trained_by(3, kVit + "--method translution --steps 2", "three");
  EXPECT_EQ(log_of(run).back().step, 2);
}

// Sums gradients of several buckets during backward and after it. Returns whether the bits are
// equal.
bool sums_agree(int rank, int size, int port) {
  WorldPlace place;
  place.rank = rank, place.size = place.local_size = size;
  place.port = port;
  World world(place, {});
  torch::manual_seed(rank);
  std::vector<torch::Tensor> parameters, after;
  for (const int64_t count : {RankGroup::kBucket - 1, 7 * RankGroup::kBucket / 4, int64_t{999}})
    parameters.push_back(torch::zeros({count}).requires_grad_());
  GradientExchange exchange(
      parameters, [&](const auto& tensors) { world.tree_sum(tensors); }, RankGroup::kBucket);
  exchange.start();
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    const auto gradient = torch::randn(parameter->sizes());
    after.insert(after.begin(), gradient.clone());
    (*parameter * gradient).sum().backward();
  }
  exchange.finish();
  world.tree_sum(after);
  bool equal = true;
  for (size_t p = 0; p < after.size(); ++p)
    equal = equal && at::equal(parameters[p].grad(), after[p]);
  world.leave();
  return equal;
}

TEST_F(Distributed, SumsDuringBackwardHaveTheBitsOfSumsAfterIt) {
  for (const int size : {2, 3}) {
    port_ = next_port();
    std::vector<pid_t> others;
    for (int rank = 1; rank < size; ++rank) {
      others.push_back(fork());
      if (others.back() != 0) continue;
      at::set_num_threads(1);  // a forked process has no threads of OpenMP
      _exit(sums_agree(rank, size, port_) ? 0 : 1);
    }
    EXPECT_TRUE(sums_agree(0, size, port_));
    for (const pid_t other : others) {
      int status = 0;
      waitpid(other, &status, 0);
      EXPECT_EQ(status, 0) << "of " << size;
    }
  }
}

TEST_F(Distributed, ResumesOnAnotherNumberOfRanks) {
  const auto arguments = kVit + "--method alpha_translution --shards 4 --steps ";
  const auto expected = trained_by(0, arguments + "6", "expected");
  trained_by(4, arguments + "2 --parallel data=4,offset=1", "run");
  trained_by(2, arguments + "4 --resume auto", "run");
  const auto run = trained_by(0, arguments + "6 --resume auto", "run");
  EXPECT_EQ(weights_of(run), weights_of(expected));
  EXPECT_EQ(losses_of(run), losses_of(expected));
}

TEST_F(Distributed, InterruptSavesACheckpointAndStopsAll) {
  const auto arguments = kVit + "--method self_attention --shards 2 --steps ";
  const Started launched(launch(2, arguments + "100000", "run"));
  ASSERT_TRUE(wait_for([&] { return fs::exists(path("run") + "/checkpoints/last"); }));
  launched.send(SIGINT);
  const auto outcome = launched.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(lines_with(outcome.err, "continue with --resume auto").size(), 1u) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("[0] translution: rank 0: stopped after step "));
}

TEST_F(Distributed, AKilledRankStopsAllAndTheRunIsResumedExactly) {
  const auto arguments = kVit + "--method self_attention --shards 4 --steps ";
  const auto expected = trained_by(0, arguments + "40", "expected");
  const int64_t kills = repeats(2, 200);
  Random random({21});
  int64_t good = 0;
  double slowest = 0;
  for (int64_t kill = 0; kill < kills; ++kill) {
    const Started launched(launch(4, arguments + "40 --resume auto", "run"));
    ASSERT_TRUE(wait_for([&] { return children_of(launched.id()).size() == 4; }));
    std::this_thread::sleep_for(duration<double>(3 * random.uniform()));
    const auto ranks = children_of(launched.id());
    const auto moment = Clock::now();
    const bool killed = ranks.size() == 4 && ::kill(ranks[random.below(4)], SIGKILL) == 0;
    const auto outcome = launched.wait();
    slowest = std::max(slowest, duration<double>(Clock::now() - moment).count());
    const bool stopped =
        outcome.code == 1 && outcome.err.find("was killed by signal 9") != std::string::npos;
    EXPECT_TRUE(stopped || outcome.code == 0) << killed << outcome.err;
    EXPECT_EQ(run(launch(0, arguments + "40 --resume auto", "run")).code, 0);
    expect_same_run(path("run"), expected);
    good += !HasFailure();
    fs::remove_all(path("run"));
  }
  print_figure("a rank of 4 killed: all stop, the same when resumed",
               std::to_string(good) + " of " + std::to_string(kills));
  EXPECT_LT(slowest, 10);
}

// Without a launcher: the heartbeats find out.
TEST_F(Distributed, ARankThatHangsOrDiesIsNamedByAllOthers) {
  const std::pair<int, int> losses[] = {{SIGSTOP, 0}, {SIGSTOP, 2}, {SIGKILL, 2}};
  for (const auto& [signal, lost] : losses) {
    SCOPED_TRACE(std::to_string(signal) + " to rank " + std::to_string(lost));
    port_ = next_port();
    fs::remove_all(path("hand"));
    std::vector<std::unique_ptr<Started>> ranks;
    for (const int r : {0, 1, 2})
      ranks.push_back(rank(r, "--rank-timeout 3 --resume auto", "", 3, 100000));
    ASSERT_TRUE(wait_for([&] { return fs::exists(path("hand") + "/checkpoints/last"); }));
    const auto moment = Clock::now();
    ranks[lost]->send(signal);
    for (int other = 0; other < 3; ++other) {
      if (other == lost) continue;
      const auto outcome = ranks[other]->wait();
      EXPECT_LT(duration<double>(Clock::now() - moment).count(), 3 + 2);  // 2: a busy machine
      EXPECT_EQ(outcome.code, 1);
      const auto errors = lines_with(outcome.err, "translution: ");
      ASSERT_EQ(errors.size(), 1u) << outcome.err;
      EXPECT_THAT(errors[0], HasSubstr("translution: rank " + std::to_string(lost)));
      EXPECT_THAT(errors[0], HasSubstr("--resume auto continues"));
    }
    ranks[lost]->send(SIGKILL);
    ranks[lost]->wait();
  }
}

// Its heartbeats go on, but not its main thread.
TEST_F(Distributed, ARankThatTakesNoPartInAnExchangeIsNamed) {
  WorldPlace place;
  place.size = place.local_size = 2;
  place.port = port_;
  WorldOptions options;
  options.exchange_timeout = options.rank_timeout = 1;
  const pid_t child = fork();
  if (child == 0) {
    place.rank = 1;
    const World world(place, options);
    std::this_thread::sleep_for(std::chrono::seconds(60));
    _exit(0);
  }
  std::string message;
  try {
    World world(place, options);
    world.sum(at::zeros({1}));
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  EXPECT_EQ(message,
            "rank 1 did not take part in an exchange within 1 s (--exchange-timeout). --resume "
            "auto continues");
  int status = 0;
  waitpid(child, &status, 0);  // the failure of rank 0 ends it
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST_F(Distributed, RanksThatDifferAreRefusedBeforeTheFirstStep) {
  const std::string advice = "; start all ranks with the same program, options and data";
  expect_both_refused("", "--lr 0.01", "", "rank 1 has lr 0.01, rank 0 has 0.001" + advice);
  expect_both_refused("", "--shards 2", "", "rank 1 has shards 2, rank 0 has 0" + advice);
  expect_both_refused("", "", "TRANSLUTION_ISA=scalar",
                      "rank 1 has instruction set scalar, rank 0 has [a-z0-9_]+" + advice);
}

TEST_F(Distributed, AWrongWorldIsRefused) {
  {
    const auto zero = rank(0, "", "", 3), one = rank(1, "", "", 3), again = rank(1, "", "", 3);
    for (const auto* started : {&zero, &one, &again}) {
      const auto outcome = (*started)->wait();
      EXPECT_EQ(outcome.code, 1);
      EXPECT_EQ(
          outcome.err,
          "translution: rank 1 is taken by two processes; expected ranks 0 to 2, each once\n");
    }
  }
  port_ = next_port();
  const auto other_size = rank(1, "", "", 3), zero = rank(0, "", "", 2);
  for (const auto* started : {&zero, &other_size})
    EXPECT_EQ((*started)->wait().err,
              "translution: rank 1 has WORLD_SIZE 3, rank 0 has 2; start all with the same\n");
  port_ = next_port();
  const auto alone = run("train --start-timeout 0.5 --out " + path("alone"),
                         "RANK=0 WORLD_SIZE=2 MASTER_PORT=" + std::to_string(port_));
  EXPECT_EQ(alone.err,
            "translution: rank 1 has not joined within 0.5 s; expected 2 processes with RANK 0 to "
            "1\n");
  const Started holder("train --start-timeout 3 --out " + path("alone"),
                       "RANK=0 WORLD_SIZE=2 MASTER_PORT=" + std::to_string(port_));
  ASSERT_TRUE(wait_for([&] { return !port_is_free(port_); }));
  const auto in_use = run("train --start-timeout 0.5 --out " + path("alone"),
                          "RANK=0 WORLD_SIZE=2 MASTER_PORT=" + std::to_string(port_))
                          .err;
  EXPECT_EQ(in_use,
            "translution: rank 0 cannot serve the store at 127.0.0.1:" + std::to_string(port_) +
                ": the port is in use; choose another MASTER_PORT\n");
  holder.wait();
  const auto lost = run("train --start-timeout 0.5 --out " + path("alone"),
                        "RANK=1 WORLD_SIZE=2 MASTER_PORT=" + std::to_string(port_));
  EXPECT_EQ(lost.err, "translution: rank 1 found no store at 127.0.0.1:" + std::to_string(port_) +
                          " within 0.5 s; is rank 0 running, and is MASTER_ADDR its address?\n");
}

// A server of another kind, which never answers.
class SilentServer {
 public:
  explicit SilentServer(int port) : id_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    const int reuse = 1;
    setsockopt(id_, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    EXPECT_EQ(bind(id_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(id_, 8), 0);
  }
  ~SilentServer() { close(id_); }

 private:
  const int id_;
};

TEST_F(Distributed, AnotherServerAtThePortIsReported) {
  const SilentServer server(port_);
  const auto outcome = run("train --start-timeout 1 --out " + path("wrong"),
                           "RANK=1 WORLD_SIZE=2 MASTER_PORT=" + std::to_string(port_));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "translution: rank 1 and the store at 127.0.0.1:" + std::to_string(port_) +
                             " did not understand each other within 1 s; does another program use "
                             "the port?\n");
}

TEST_F(Distributed, BesideTheStoreOfTorchrunTheNextPortIsTaken) {
  const SilentServer torchrun(port_);
  const auto own = "TORCHELASTIC_USE_AGENT_STORE=True";
  const auto zero = rank(0, "", own), one = rank(1, "", own);
  for (const auto* started : {&zero, &one}) {
    const auto outcome = (*started)->wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
}

struct WrongPlace {
  const char *variables, *arguments, *message;
};

TEST_F(Distributed, AWrongPlaceOrNumberIsRefused) {
  const WrongPlace places[] = {
      {"RANK=1", "", "WORLD_SIZE: expected a number, as RANK is set; set both, or neither"},
      {"WORLD_SIZE=2", "", "RANK: expected a number, as WORLD_SIZE is set; set both, or neither"},
      {"RANK=2 WORLD_SIZE=2", "", "rank 2: RANK: expected 0 to 1, got 2"},
      {"RANK=0 WORLD_SIZE=many", "", "rank 0: WORLD_SIZE: expected a whole number, got 'many'"},
      {"", "--shards 6", "shards: expected a power of two, got 6"},
      {"", "--shards 64 --batch 32", "shards: expected at most the batch, 32, got 64"}};
  for (const auto& [variables, arguments, message] : places) {
    const auto outcome =
        run(std::string("train ") + arguments + " --out " + path("wrong"), variables);
    EXPECT_EQ(outcome.code, 2) << variables << arguments;
    EXPECT_EQ(outcome.err, std::string("translution: ") + message + "\n");
  }
  const auto interface =
      run("train --interface eth77 --out " + path("wrong"), "RANK=0 WORLD_SIZE=2");
  EXPECT_THAT(interface.err, HasSubstr("interface: expected one of lo"));
  const auto machines =
      run("train --out " + path("wrong"), "RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2");
  EXPECT_THAT(machines.err, HasSubstr("since WORLD_SIZE is 4 and LOCAL_WORLD_SIZE 2; got lo"));
  const auto three = run(launch(3, kVit + "--shards 8 --steps 1", "wrong"));
  EXPECT_EQ(three.code, 2);
  EXPECT_THAT(three.err, HasSubstr("shards: expected 1, 2, 4, … processes up to 8, the number of "
                                   "shards, got 3"));
}

TEST(Info, CountsTheMemoryOfShards) {
  const std::string model = "info --model vit-tiny/12 --image-size 84 --batch ";
  const auto whole = json_of(model + "64 --shards 8 --ranks 2")[0], shard = json_of(model + "8")[0];
  const int64_t weights = shard["weight_bytes"], buffers = 32 << 20;
  EXPECT_EQ(whole["rank_bytes"],
            shard["training_bytes"].get<int64_t>() + 2 * weights + std::min(buffers, 2 * weights));
  EXPECT_FALSE(shard.contains("rank_bytes"));
  expect_refused({"info --model vit-tiny/12 --image-size 84 --batch 64 --shards 8 --ranks 3",
                  "--ranks: expected a divisor of the 8 shards, got 3"});
}

TEST_F(Distributed, LaunchShowsOneErrorAndItsExitCode) {
  const auto outcome = run("launch --ranks 2 -- train --data mnist:/none --out " + path("wrong"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, ::testing::MatchesRegex("\\[[01]\\] translution: rank [01]: /none.*\n"));
  EXPECT_EQ(run("launch --ranks 2 -- eval x").err,
            "translution: launch: expected -- train with its options, got 'eval'; other commands "
            "run in one process\n");
}

}  // namespace
}  // namespace translution
