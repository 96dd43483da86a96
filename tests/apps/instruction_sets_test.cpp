#include "apps/translution/instruction_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace translution::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<Isa> kAll = {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx};
const std::vector<Isa> kAllButAmx(kAll.begin(), kAll.end() - 1);

TEST(InstructionSets, SayWhyAmxIsNotUsed) {
  const auto why = [](Amx amx) {
    return describe({kAllButAmx, Isa::avx512_bf16, "avx512_core_bf16", amx, ""});
  };
  EXPECT_THAT(why(Amx::absent), HasSubstr("not used: amx (the processor does not have it)\n"));
  EXPECT_THAT(why(Amx::disabled), HasSubstr("not used: amx (the operating system does not enable"));
  EXPECT_THAT(why(Amx::hidden), HasSubstr("not used: amx (the operating system does not grant it"));
  EXPECT_THAT(describe({{Isa::scalar}, Isa::scalar, "", Amx::usable, ""}),
              HasSubstr("not used: amx (it needs avx512_bf16)\n"));
}

TEST(InstructionSets, SayWhyOnednnDoesNotUseAmx) {
  const auto why = [](Amx amx, const std::string& users = "") {
    return describe({kAll, Isa::amx, "avx512_core_bf16", amx, users});
  };
  EXPECT_THAT(why(Amx::hidden), HasSubstr("not used by oneDNN: amx (CPUID hides leaf 0x1D"));
  EXPECT_THAT(why(Amx::usable, "ONEDNN_MAX_CPU_ISA=AVX2"),
              HasSubstr("not used by oneDNN: amx (ONEDNN_MAX_CPU_ISA=AVX2)\n"));
  EXPECT_THAT(why(Amx::usable), HasSubstr("not used by oneDNN: amx (this version does not use"));
  EXPECT_THAT(describe({kAll, Isa::amx, "", Amx::hidden, ""}), Not(HasSubstr("oneDNN: amx")));
}

TEST(InstructionSets, SayThatAmxIsUsed) {
  const auto text = describe({kAll, Isa::amx, "avx512_core_amx", Amx::usable, ""});
  EXPECT_THAT(text, HasSubstr("row operations: avx512\n"));
  EXPECT_THAT(text, HasSubstr("oneDNN up to avx512_core_amx\n"));
  EXPECT_THAT(text, HasSubstr("bfloat16 products: AMX tiles\n"));
  EXPECT_THAT(text, Not(HasSubstr("not used")));
  EXPECT_THAT(text, Not(HasSubstr("warning")));
}

TEST(InstructionSets, WarnIfTheUserEnablesHiddenTiles) {
  const auto text = describe(
      {kAll, Isa::amx, "avx512_core_amx", Amx::hidden, "ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX"});
  EXPECT_THAT(text, HasSubstr("warning: CPUID hides the tiles of amx"));
  EXPECT_THAT(text, HasSubstr("unset ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX\n"));
}

TEST(InstructionSets, SayHowBfloat16IsMultiplied) {
  const auto path = [](const std::vector<Isa>& available, Isa chosen) {
    return bf16_products({available, chosen, "", Amx::usable, ""});
  };
  EXPECT_EQ(path(kAll, Isa::amx), "AMX tiles");
  EXPECT_EQ(path(kAll, Isa::avx512_bf16), "AVX512_BF16");
  EXPECT_EQ(path(kAll, Isa::avx2),
            "rounded operands, multiplied in float32 (TRANSLUTION_ISA=avx2)");
}

TEST(InstructionSets, SayWhatTheProcessorLacks) {
  const auto text = describe({{Isa::scalar, Isa::avx2}, Isa::scalar, "", Amx::absent, ""});
  EXPECT_THAT(text, HasSubstr("row operations: scalar\n"));
  EXPECT_THAT(text, HasSubstr("not used: avx2 (TRANSLUTION_ISA=scalar)\n"));
  EXPECT_THAT(text, HasSubstr("not used: avx512 (the processor does not have it)\n"));
  EXPECT_THAT(text, HasSubstr("bfloat16 products: rounded operands, multiplied in float32 (this "
                              "processor has no bfloat16 instructions)\n"));
  EXPECT_THAT(text, Not(HasSubstr("oneDNN up to")));
}

}  // namespace
}  // namespace translution::cli
