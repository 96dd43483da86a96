#include "translution/core/cpu_info.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace translution {
namespace {

// The tile info of a Xeon with AMX: eight tiles of 16 rows of 64 bytes.
TileInfo sapphire_rapids() {
  TileInfo info;
  info.features = 1u << 22 | 1u << 24 | 1u << 25;
  info.palettes = 1;
  info.tiles = 8u << 16 | 64;
  info.rows = 16;
  info.enabled = 0x600e7;
  return info;
}

// The same Xeon in a virtual machine whose highest leaf is 0x1C.
TileInfo firecracker() {
  TileInfo info = sapphire_rapids();
  info.palettes = info.tiles = info.rows = 0;
  return info;
}

TEST(AmxSupport, FollowsFromCpuid) {
  EXPECT_EQ(amx_support({}), Amx::absent);
  EXPECT_EQ(amx_support(sapphire_rapids()), Amx::usable);
  EXPECT_EQ(amx_support(firecracker()), Amx::hidden);
}

TEST(AmxSupport, NeedsEveryFieldOfThePalette) {
  for (uint32_t TileInfo::*number : {&TileInfo::palettes, &TileInfo::tiles, &TileInfo::rows}) {
    TileInfo info = sapphire_rapids();
    info.*number = 0;
    EXPECT_EQ(amx_support(info), Amx::hidden);
  }
  TileInfo info = sapphire_rapids();
  info.tiles = 64;  // no tile
  EXPECT_EQ(amx_support(info), Amx::hidden);
  info.tiles = 8u << 16;  // rows of no bytes
  EXPECT_EQ(amx_support(info), Amx::hidden);
}

TEST(AmxSupport, NeedsTheOperatingSystem) {
  for (TileInfo info : {sapphire_rapids(), firecracker()})
    for (const uint64_t enabled : {0xe7u, 0x200e7u, 0x400e7u}) {
      info.enabled = enabled;
      EXPECT_EQ(amx_support(info), Amx::disabled);
    }
}

TEST(AmxSupport, IsAbsentWithoutFeatures) {
  TileInfo info = sapphire_rapids();
  info.features = ~(1u << 22 | 1u << 24 | 1u << 25);
  EXPECT_EQ(amx_support(info), Amx::absent);
}

// The contents of /proc/cpuinfo, or an empty string.
std::string kernel_cpu_flags() {
  std::FILE* const file = std::fopen("/proc/cpuinfo", "r");
  if (file == nullptr) return "";
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

bool has_word(const std::string& text, const std::string& word) {
  return text.find(" " + word + " ") != std::string::npos;
}

TEST(AmxSupport, AgreesWithTheKernelAboutThisProcessor) {
  const std::string text = kernel_cpu_flags();
  if (text.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
  const Amx amx = amx_support(read_tile_info());
  EXPECT_EQ(amx == Amx::usable || amx == Amx::hidden, has_word(text, "amx_tile"));
}

// A processor with all features, in a process that may use tiles.
CpuInfo full_cpu() {
  CpuInfo info;
  info.avx2 = info.avx512 = true;
  info.more_features = 1u << 5;
  info.tiles = sapphire_rapids();
  info.tiles_granted = true;
  return info;
}

Isa best(const CpuInfo& info) { return supported_isas(info).back(); }

TEST(SupportedIsas, AreAllOnAProcessorWithAllFeatures) {
  const std::vector<Isa> all{Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx};
  EXPECT_EQ(supported_isas(full_cpu()), all);
  EXPECT_EQ(supported_isas({}), std::vector<Isa>{Isa::scalar});
}

TEST(SupportedIsas, EndBeforeTheFirstMissingSet) {
  CpuInfo info = full_cpu();
  info.avx2 = false;
  EXPECT_EQ(best(info), Isa::scalar);
  info = full_cpu(), info.avx512 = false;
  EXPECT_EQ(best(info), Isa::avx2);
  info = full_cpu(), info.more_features = ~(1u << 5);
  EXPECT_EQ(best(info), Isa::avx512);
  info = full_cpu(), info.tiles_granted = false;
  EXPECT_EQ(best(info), Isa::avx512_bf16);
}

TEST(SupportedIsas, NeedBfloat16TilesThatTheSystemEnables) {
  for (const uint32_t features : {0u, 1u << 22, 1u << 24, 1u << 24 | 1u << 25}) {
    CpuInfo info = full_cpu();
    info.tiles.features = features;
    EXPECT_EQ(best(info), Isa::avx512_bf16);
  }
  for (const uint64_t enabled : {0xe7u, 0x200e7u, 0x400e7u}) {
    CpuInfo info = full_cpu();
    info.tiles.enabled = enabled;
    EXPECT_EQ(best(info), Isa::avx512_bf16);
  }
}

TEST(SupportedIsas, IncludeAmxIfLeaf0x1DIsHidden) {
  CpuInfo info = full_cpu();
  info.tiles = firecracker();
  EXPECT_EQ(best(info), Isa::amx);
}

TEST(SupportedIsas, AgreeWithTheKernelAboutThisProcessor) {
  const std::string text = kernel_cpu_flags();
  if (text.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
  EXPECT_EQ(available_isas().back() >= Isa::avx512_bf16, has_word(text, "avx512_bf16"));
  EXPECT_TRUE(available_isas().back() < Isa::amx || has_word(text, "amx_bf16"));
}

}  // namespace
}  // namespace translution
