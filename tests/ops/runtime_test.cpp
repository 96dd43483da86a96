#include "translution/ops/runtime.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "tests/support/portable_only.h"
#include "tests/support/process.h"
#include "tests/support/thread_count.h"
#include "translution/core/cpu_info.h"
#include "translution/core/error.h"
#include "translution/nn/options.h"
#include "translution/ops/attention.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution::testing {

using namespace detail;

namespace {

std::string refusal(const std::function<void()>& work) {
  return message_of<std::invalid_argument>(work);
}

// Runs the test in a new process with these environment variables; returns its exit code.
int run_again(const std::string& variables, const std::string& test) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  int code = 0;
  output_of_command("env " + variables + " " + self + " --gtest_filter=" + test + " 2>&1", &code);
  return code;
}

// The numbers of the threads that took part in a team.
std::set<int> team() {
  std::set<int> numbers;
  std::mutex mutex;
  on_team([&](int number, int) {
    const std::lock_guard lock(mutex);
    numbers.insert(number);
  });
  return numbers;
}

TEST(Runtime, SetThreadsDoesNotChangeLibTorchsThreads) {
  const int torch_threads = at::get_num_threads();
  for (const int count : {1, 3, 5}) {
    runtime().set_threads(count);
    EXPECT_EQ(runtime().threads(), count);
    EXPECT_EQ(team().size(), static_cast<size_t>(count));
  }
  runtime().set_threads(0);
  EXPECT_EQ(at::get_num_threads(), torch_threads);
}

TEST(Runtime, AutomaticThreadsFollowLibTorch) {
  const int before = at::get_num_threads();
  at::set_num_threads(5);
  EXPECT_EQ(runtime().threads(), 5);
  at::set_num_threads(before);
}

TEST(Runtime, AutomaticThreadsAreAllCoresByDefault) {
  if (const char* text = std::getenv("EXPECTED_THREADS")) {
    const int torch_threads = at::get_num_threads();
    const int expected = std::string(text) == "all" ? usable_cores() : std::stoi(text);
    EXPECT_EQ(runtime().threads(),
              std::string(text) == "all" && torch_threads > 1 ? torch_threads : expected);
    EXPECT_EQ(in_child([&] { ensure(runtime().threads() == torch_threads, "another number"); }), 0)
        << "a forked process uses LibTorch's number";
    return;
  }
  const std::string self = "Runtime.AutomaticThreadsAreAllCoresByDefault";
  EXPECT_EQ(run_again("-u OMP_NUM_THREADS EXPECTED_THREADS=all", self), 0);
  EXPECT_EQ(run_again("OMP_NUM_THREADS=1 EXPECTED_THREADS=1", self), 0);
  if (at::hasMKL() && usable_cores() < 3) return;  // LibTorch takes MKL's number, at most the cores
  EXPECT_EQ(run_again("OMP_NUM_THREADS=3 EXPECTED_THREADS=3", self), 0);
}

TEST(Runtime, RefusesInvalidValues) {
  EXPECT_EQ(refusal([] { runtime().set_threads(-1); }),
            "runtime: expected 1 to 1024 threads, or 0 for automatic, got -1");
  EXPECT_EQ(refusal([] { runtime().set_threads(1025); }),
            "runtime: expected 1 to 1024 threads, or 0 for automatic, got 1025");
  EXPECT_EQ(refusal([] { runtime().set_workspace(-1); }),
            "runtime: expected a workspace of 0 or more bytes, got -1");
  EXPECT_EQ(refusal([] { runtime().set_pool_limit(-1); }),
            "runtime: expected a pool limit of 0 or more bytes, got -1");
}

TEST(Runtime, ReadsTheEnvironmentAndRefusesInvalidVariables) {
  if (const char* text = std::getenv("EXPECTED_WORKSPACE")) {
    EXPECT_EQ(runtime().workspace(), std::stoll(text));
    EXPECT_EQ(runtime().implementation(), Implementation::portable);
    return;
  }
  if (const char* text = std::getenv("EXPECTED_REFUSAL")) {
    EXPECT_EQ(refusal([] { runtime(); }), text);
    EXPECT_EQ(refusal([] { runtime(); }), text) << "at every call";
    return;
  }
  const std::string self = "Runtime.ReadsTheEnvironmentAndRefusesInvalidVariables";
  EXPECT_EQ(
      run_again("TRANSLUTION_WORKSPACE=3K TRANSLUTION_IMPL=portable EXPECTED_WORKSPACE=3072", self),
      0);
  EXPECT_EQ(
      run_again("TRANSLUTION_IMPL=fast EXPECTED_REFUSAL=\"TRANSLUTION_IMPL: expected fused or "
                "portable, got 'fast'\"",
                self),
      0);
  EXPECT_EQ(run_again("TRANSLUTION_WORKSPACE=1T EXPECTED_REFUSAL=\"TRANSLUTION_WORKSPACE: expected "
                      "bytes such as 0, 65536, 512M or 4G, got '1T'\"",
                      self),
            0);
}

TEST(Runtime, WorkspaceAppliesToOptionsConstructedLater) {
  const int64_t before = runtime().workspace();
  const AttentionOptions earlier(8);
  runtime().set_workspace(12345);
  EXPECT_EQ(earlier.workspace(), before);
  EXPECT_EQ(AttentionOptions(8).workspace(), 12345);
  EXPECT_EQ(AttentionCall().workspace, 12345);
  EXPECT_EQ(AttentionOptions(8).workspace(7).workspace(), 7);
  runtime().set_workspace(before);
}

TEST(Runtime, ImplementationAppliesToAllThreads) {
  const PortableOnly portable;
  bool fused = true;
  std::thread([&] { fused = runtime().fused(); }).join();
  EXPECT_FALSE(fused);
}

TEST(Runtime, PoolHoldsUpToItsLimitAndReleasesMemory) {
  constexpr int64_t kMegabyte = 1 << 20;
  const int64_t limit = runtime().pool_limit();
  runtime().release_pool();
  EXPECT_EQ(runtime().pool_bytes(), 0);
  std::vector<at::Tensor> all;
  for (const int64_t megabytes : {4, 8, 16})
    all.push_back(large_empty({megabytes * kMegabyte}, at::kByte));
  all.clear();
  EXPECT_EQ(runtime().pool_bytes(), 28 * kMegabyte);
  runtime().set_pool_limit(13 * kMegabyte);
  EXPECT_EQ(runtime().pool_limit(), 13 * kMegabyte);
  EXPECT_EQ(runtime().pool_bytes(), 12 * kMegabyte) << "the largest is freed first";
  large_empty({6 * kMegabyte}, at::kByte);  // would exceed the limit
  EXPECT_EQ(runtime().pool_bytes(), 12 * kMegabyte);
  EXPECT_EQ(runtime().release_pool(), 12 * kMegabyte);
  EXPECT_EQ(runtime().pool_bytes(), 0);
  runtime().set_pool_limit(limit);
}

TEST(Parallel, RangesCoverAllIndicesOnAnyNumberOfThreads) {
  ThreadCount threads(1);
  for (const int count : {1, 2, 3, 8}) {
    threads.set(count);
    for (const int64_t size : {0, 1, 7, 100})
      for (const int64_t grain : {1, 3, 200}) {
        std::vector<int> seen(size);
        std::atomic<int> ranges{0};
        parallel_ranges(size, grain, [&](int64_t begin, int64_t end) {
          ++ranges;
          for (int64_t i = begin; i < end; ++i) ++seen[i];
        });
        EXPECT_EQ(seen, std::vector<int>(size, 1));
        EXPECT_LE(ranges, std::min<int64_t>(count, (size + grain - 1) / grain));
      }
  }
}

TEST(Parallel, ExceptionsOfThreadsAreRethrown) {
  const ThreadCount threads(3);
  EXPECT_EQ(message_of([] {
              parallel_ranges(3, 1, [](int64_t begin, int64_t) {
                if (begin == 2) throw std::runtime_error("from the last thread");
              });
            }),
            "from the last thread");
  EXPECT_EQ(message_of([] {
              parallel_each(9, [] {
                return [](int64_t index) {
                  if (index == 5) throw std::runtime_error("of the sixth");
                };
              });
            }),
            "of the sixth");
}

TEST(Parallel, NestedCallsUseOneThread) {
  const ThreadCount threads(3);
  std::atomic<int> teams{0};
  parallel_each(6, [&] {
    return [&](int64_t) {
      EXPECT_EQ(team_size(), 1);
      on_team([&](int, int of) {
        EXPECT_EQ(of, 1);
        ++teams;
      });
    };
  });
  EXPECT_EQ(teams, 6);
  at::parallel_for(0, 3, 1, [](int64_t, int64_t) { EXPECT_EQ(team_size(), 1); });
}

TEST(Parallel, OneThreadAffectsTheCallingThreadOnly) {
  const ThreadCount threads(3);
  {
    const OneThread alone;
    EXPECT_EQ(team_size(), 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
    int elsewhere = 0;
    std::thread([&] { elsewhere = team_size(); }).join();
    EXPECT_EQ(elsewhere, 3);
  }
  EXPECT_EQ(team_size(), 3);
  EXPECT_EQ(omp_get_max_threads(), 3);
}

}  // namespace
}  // namespace translution::testing
