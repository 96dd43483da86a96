// Products of bfloat16 with threads, forks and signals: with AMX, each of them could lose the tile
// state.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <thread>

#include "tests/kernels/bf16_cases.h"

namespace translution::kernels {
namespace {

class Bf16InAProcess : public ::testing::TestWithParam<Isa> {
 protected:
  static constexpr int64_t m = 130, k = 96, n = 64;

  std::vector<float> multiplied(Bf16Products& products) const {
    std::vector<float> c(m * n);
    products.multiply(m, a.data(), a.stride(), PackedMatrix(tiles.data(), k, n), false, c.data(),
                      n);
    return c;
  }

  std::vector<float> multiplied() const {
    Bf16Products products(GetParam());
    return multiplied(products);
  }

  std::mt19937 random{12};
  const Bf16Matrix a{m, k, 0, 0, Bf16Matrix::Kind::normal, random};
  const Bf16Matrix b{k, n, 0, 0, Bf16Matrix::Kind::normal, random};
  const std::vector<Bf16> tiles = b.packed(k);
};

TEST_P(Bf16InAProcess, IsTheSameOnEveryThread) {
  const auto expected = multiplied();
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = multiplied(); });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST_P(Bf16InAProcess, IsTheSameAfterAFork) {
  if (GetParam() < Isa::avx512_bf16) GTEST_SKIP() << "oneDNN may wait for threads of the parent";
  const auto expected = multiplied();
  EXPECT_EXIT(std::_Exit(multiplied() == expected ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

volatile sig_atomic_t signals = 0;

TEST_P(Bf16InAProcess, IsTheSameUnderSignals) {
  if (GetParam() < Isa::avx512_bf16) GTEST_SKIP() << "signals must not interrupt oneDNN";
  Bf16Products products(GetParam());
  const auto expected = multiplied(products);
  struct sigaction action = {}, before;
  action.sa_handler = [](int) { signals = signals + 1; };
  sigaction(SIGALRM, &action, &before);
  const itimerval every_100_us{{0, 100}, {0, 100}}, never{};
  setitimer(ITIMER_REAL, &every_100_us, nullptr);
  signals = 0;
  while (signals < 200) ASSERT_EQ(multiplied(products), expected);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Sets, Bf16InAProcess, ::testing::ValuesIn(available_isas()));

}  // namespace
}  // namespace translution::kernels
