#include "translution/ops/onednn_limit.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "translution/kernels/onednn.h"

namespace translution::testing {
namespace {

// AMX as reported by Firecracker: no tile configuration.
TileInfo hidden_tiles() {
  TileInfo info;
  info.features = 1u << 22 | 1u << 24 | 1u << 25;
  info.enabled = 0x600e7;
  return info;
}

// A bfloat16 product in LibTorch, which uses oneDNN on CPUs with AVX-512.
void multiply_bfloat16() {
  const auto x = at::ones({64, 64}, at::kBFloat16);
  at::matmul(x, x);
}

[[noreturn]] void exit_with(bool good) {
  std::fprintf(stderr, "oneDNN up to %s\n", kernels::onednn_isa().c_str());
  std::_Exit(good ? 0 : 1);
}

// oneDNN accepts a limit only once, so every case needs its own process. The "threadsafe" style
// starts the program again for each case.
class OnednnLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    if (!users_onednn_limit().empty()) GTEST_SKIP() << users_onednn_limit();
    if (onednn_limit() != OnednnLimit::not_needed)
      GTEST_SKIP() << "already limited on this machine";
  }
};

TEST_F(OnednnLimits, AreSetBeforeTheFirstProduct) {
  EXPECT_EXIT(
      {
        const auto limit = limit_onednn(hidden_tiles(), "");
        multiply_bfloat16();
        std::fprintf(stderr, "limit %s, ", name_of(kOnednnLimits, limit));
        exit_with((limit == OnednnLimit::set || limit == OnednnLimit::ours_only) &&
                  kernels::onednn_isa().find("amx") == std::string::npos);
      },
      ::testing::ExitedWithCode(0), "oneDNN up to");
}

TEST_F(OnednnLimits, ComeTooLateAfterAProductOfLibTorch) {
  if (!at::hasMKLDNN() || available_isas().back() < Isa::avx512)
    GTEST_SKIP() << "LibTorch multiplies without oneDNN";
  EXPECT_EXIT(
      {
        multiply_bfloat16();
        const auto limit = limit_onednn(hidden_tiles(), "");
        exit_with(limit == OnednnLimit::too_late || limit == OnednnLimit::ours_only);
      },
      ::testing::ExitedWithCode(0), "oneDNN up to");
}

TEST_F(OnednnLimits, AreNotNeededWhereTilesAreComplete) {
  EXPECT_EXIT(
      {
        TileInfo complete = hidden_tiles();
        complete.palettes = 1;
        complete.tiles = 8u << 16 | 64;
        complete.rows = 16;
        exit_with(limit_onednn({}, "") == OnednnLimit::not_needed &&
                  limit_onednn(complete, "") == OnednnLimit::not_needed);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(OnednnLimits, DoNotOverrideTheUser) {
  EXPECT_EXIT(
      {
        setenv("DNNL_MAX_CPU_ISA", "SSE41", 1);
        const bool known = users_onednn_limit() == "DNNL_MAX_CPU_ISA=SSE41";
        setenv("ONEDNN_MAX_CPU_ISA", "", 1);  // counts as unset
        const bool same = users_onednn_limit() == "DNNL_MAX_CPU_ISA=SSE41";
        const auto limit = limit_onednn(hidden_tiles(), users_onednn_limit());
        const auto isa = kernels::onednn_isa();
        exit_with(known && same && limit == OnednnLimit::users_choice &&
                  (isa.empty() || isa == "sse41"));
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace translution::testing
