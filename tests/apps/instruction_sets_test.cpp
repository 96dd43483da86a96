#include "apps/translution/instruction_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace translution::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<Isa> kAll = {Isa::scalar, Isa::avx2, Isa::avx512};

TEST(InstructionSets, SayWhyAmxIsNotUsed) {
  const auto why = [](Amx amx, const std::string& users = "") {
    return describe({kAll, Isa::avx512, "avx512_core_bf16", amx, users});
  };
  EXPECT_THAT(why(Amx::absent), HasSubstr("not used: amx (the processor does not have it)\n"));
  EXPECT_THAT(why(Amx::disabled), HasSubstr("not used: amx (the operating system does not enable"));
  EXPECT_THAT(why(Amx::hidden), HasSubstr("not used: amx (CPUID shows it but hides leaf 0x1D"));
  EXPECT_THAT(why(Amx::usable, "ONEDNN_MAX_CPU_ISA=AVX2"),
              HasSubstr("not used: amx (ONEDNN_MAX_CPU_ISA=AVX2)\n"));
  EXPECT_THAT(why(Amx::usable), HasSubstr("not used: amx (oneDNN does not use it)\n"));
}

TEST(InstructionSets, SayThatAmxIsUsed) {
  const auto text = describe({kAll, Isa::avx512, "avx512_core_amx", Amx::usable, ""});
  EXPECT_THAT(text, HasSubstr("oneDNN up to avx512_core_amx\n"));
  EXPECT_THAT(text, Not(HasSubstr("not used")));
  EXPECT_THAT(text, Not(HasSubstr("warning")));
}

TEST(InstructionSets, WarnWhereTheUserAsksForHiddenTiles) {
  const auto text = describe(
      {kAll, Isa::avx512, "avx512_core_amx", Amx::hidden, "ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX"});
  EXPECT_THAT(text, HasSubstr("warning: CPUID hides the tiles of amx"));
  EXPECT_THAT(text, HasSubstr("unset ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX\n"));
}

TEST(InstructionSets, SayWhatTheProcessorLacks) {
  const auto text = describe({{Isa::scalar, Isa::avx2}, Isa::scalar, "", Amx::absent, ""});
  EXPECT_THAT(text, HasSubstr("row operations: scalar\n"));
  EXPECT_THAT(text, HasSubstr("not used: avx2 (TRANSLUTION_ISA=scalar)\n"));
  EXPECT_THAT(text, HasSubstr("not used: avx512 (the processor does not have it)\n"));
  EXPECT_THAT(text, Not(HasSubstr("oneDNN up to")));
}

}  // namespace
}  // namespace translution::cli
