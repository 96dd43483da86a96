#include "translution/core/cpu_info.h"

#include <gtest/gtest.h>

namespace translution {
namespace {

// What a Xeon with AMX says: eight tiles of 16 rows of 64 bytes.
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

TEST(AmxSupport, NeedsEveryNumberOfThePalette) {
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

TEST(AmxSupport, AgreesWithTheKernelAboutThisProcessor) {
  std::FILE* const file = std::fopen("/proc/cpuinfo", "r");
  if (file == nullptr) GTEST_SKIP() << "no /proc/cpuinfo";
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  const bool shown = text.find(" amx_tile") != std::string::npos;
  const Amx amx = amx_support(read_tile_info());
  EXPECT_EQ(amx == Amx::usable || amx == Amx::hidden, shown);
}

}  // namespace
}  // namespace translution
