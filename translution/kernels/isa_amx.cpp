#include <immintrin.h>

#include "translution/kernels/bf16_tiles-inl.h"

namespace translution::kernels {
namespace {

// GCC's intrinsics paste the tile number as text, so a template parameter cannot be passed.
struct AmxTiles {
  template <int t>
  void load(const void* p, int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(t) : "memory");
  }
  template <int t>
  void store(void* p, int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(t) : "memory");
  }
  template <int t>
  void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(t));
  }
  template <int c, int a, int b>
  void multiply() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
};

// The operand of ldtilecfg.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

}  // namespace

void configure_tiles() {
  const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
}

void release_tiles() { _tile_release(); }

void multiply_amx(const Bf16Product& product, Bf16* scratch, RoundRow round) {
  AmxTiles tiles;
  multiply_in_tiles(tiles, product, scratch, round);
}

}  // namespace translution::kernels
