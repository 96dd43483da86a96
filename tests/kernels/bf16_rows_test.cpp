// Rounding and packing: the same bits on every instruction set.

#include <gtest/gtest.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tests/kernels/bf16_cases.h"

namespace translution::kernels {
namespace {

float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// The rule: round to nearest, ties to even, flush denormals to zero, quieten NaNs.
uint16_t rounded(uint32_t bits) {
  const auto upper = static_cast<uint16_t>(bits >> 16);
  const uint32_t rest = bits & 0xFFFF, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return upper | 0x40;
  if (magnitude < 0x00800000) return upper & 0x8000;
  const bool up = rest > 0x8000 || (rest == 0x8000 && upper % 2 == 1);
  return static_cast<uint16_t>(upper + up);
}

// Every upper half with the lower halves at which the rule changes.
std::vector<uint32_t> patterns() {
  std::vector<uint32_t> all;
  for (uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x4000u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
      all.push_back(upper << 16 | lower);
  return all;
}

std::vector<float> floats_of(const std::vector<uint32_t>& patterns) {
  std::vector<float> numbers(patterns.size());
  std::memcpy(numbers.data(), patterns.data(), patterns.size() * sizeof(float));
  return numbers;
}

TEST(Bf16Rounding, IsTheSameOnEveryInstructionSet) {
  const auto all = patterns();
  const auto numbers = floats_of(all);
  for (const Isa isa : available_isas()) {
    std::vector<Bf16> out(numbers.size());
    bf16_row_ops(isa).round(numbers.data(), static_cast<int64_t>(numbers.size()), out.data());
    int64_t different = 0;
    for (size_t i = 0; i < all.size(); ++i) different += out[i].bits != rounded(all[i]);
    EXPECT_EQ(different, 0) << name_of(kIsas, isa);
  }
}

TEST(Bf16Rounding, RoundsToNearestEven) {
  EXPECT_EQ(bf16_of(1.0f).bits, 0x3F80);
  EXPECT_EQ(value_of(bf16_of(1.00390625f)), 1.0f);       // halfway, down to even
  EXPECT_EQ(value_of(bf16_of(1.01171875f)), 1.015625f);  // halfway, up to even
  EXPECT_EQ(value_of(bf16_of(3.4e38f)), INFINITY);
  EXPECT_TRUE(std::isnan(value_of(bf16_of(float_of(0x7F800001)))));
  EXPECT_EQ(bf16_of(float_of(0x807FFFFF)).bits, 0x8000);  // the largest denormal
}

TEST(Bf16Rounding, HandlesRowsOfAnyLength) {
  for (const Isa isa : available_isas())
    for (int64_t count = 0; count < 40; ++count) {
      std::vector<float> x(static_cast<size_t>(count) + 1, 1.5f);
      std::vector<Bf16> out(static_cast<size_t>(count) + 2, Bf16{7});
      bf16_row_ops(isa).round(x.data() + 1, count, out.data() + 1);
      EXPECT_EQ(out.front().bits, 7);
      EXPECT_EQ(out.back().bits, 7);
      for (int64_t i = 1; i <= count; ++i) EXPECT_EQ(out[static_cast<size_t>(i)].bits, 0x3FC0);
      std::vector<float> back(x.size() + 1, 9.0f);
      bf16_row_ops(isa).widen(out.data() + 1, count, back.data() + 1);
      EXPECT_EQ(back.front(), 9.0f);
      EXPECT_EQ(back.back(), 9.0f);
      for (int64_t i = 1; i <= count; ++i) EXPECT_EQ(back[static_cast<size_t>(i)], 1.5f);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bf16"))) void round_by_instruction(const float* x, Bf16* out) {
  const auto rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x));
  std::memcpy(out, &rounded, sizeof rounded);
}

TEST(Bf16Rounding, MatchesTheInstruction) {
  if (available_isas().back() < Isa::avx512_bf16) GTEST_SKIP() << "no vcvtneps2bf16";
  const auto all = patterns();
  const auto numbers = floats_of(all);
  int64_t different = 0;
  for (size_t i = 0; i + 16 <= all.size(); i += 16) {
    Bf16 out[16];
    round_by_instruction(numbers.data() + i, out);
    for (size_t l = 0; l < 16; ++l) different += out[l].bits != rounded(all[i + l]);
  }
  EXPECT_EQ(different, 0);
}
#endif

// ----------------------------------------------------------------------------------- packing

struct Shape {
  int64_t k, n;
};
const Shape kShapes[] = {{1, 1},   {2, 16},  {3, 17},  {8, 8},   {26, 72},  {31, 15},
                         {32, 16}, {33, 33}, {72, 97}, {97, 26}, {192, 192}};

// Element (row, column), located by the documented layout.
Bf16 packed_at(const std::vector<Bf16>& tiles, int64_t k, int64_t row, int64_t column) {
  const int64_t tiles_down = (k + 31) / 32, tile = column / 16 * tiles_down + row / 32;
  return tiles[static_cast<size_t>(tile * 512 + row % 32 / 2 * 32 + column % 16 * 2 + row % 2)];
}

std::vector<float> numbers_of(const Shape& shape, int64_t ldw) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> w(static_cast<size_t>(std::max(shape.k, shape.n) * ldw));
  for (auto& number : w) number = normal(random);
  return w;
}

TEST(Bf16Packing, PutsPairsOfRowsIntoTiles) {
  for (const Isa isa : available_isas())
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << name_of(kIsas, isa) << " " << shape.k << "x" << shape.n);
      const int64_t k = shape.k, n = shape.n, ldw = std::max(k, n) + 3;
      const auto w = numbers_of(shape, ldw);
      std::vector<Bf16> rounded(w.size());
      const Bf16RowOps& ops = bf16_row_ops(isa);
      ops.round(w.data(), static_cast<int64_t>(w.size()), rounded.data());
      const auto size = static_cast<size_t>(packed_size(k, n));
      for (const bool transposed : {false, true})
        for (const bool from_floats : {false, true}) {
          std::vector<Bf16> out(size + 1, Bf16{7});
          if (from_floats)
            (transposed ? ops.pack_transposed : ops.pack)(w.data(), ldw, k, n, out.data());
          else
            (transposed ? ops.pack_transposed_bf16 : ops.pack_bf16)(rounded.data(), ldw, k, n,
                                                                    out.data());
          int64_t different = out[size].bits != 7;
          for (int64_t row = 0; row < (k + 31) / 32 * 32; ++row)
            for (int64_t column = 0; column < (n + 15) / 16 * 16; ++column) {
              const int64_t index = transposed ? column * ldw + row : row * ldw + column;
              const bool inside = row < k && column < n;
              different += packed_at(out, k, row, column).bits !=
                           (inside ? rounded[static_cast<size_t>(index)].bits : 0);
            }
          EXPECT_EQ(different, 0) << (transposed ? "transposed " : "") << from_floats;
        }
    }
}

// Packing band by band, as the optimizer does, gives the same tiles as packing at once.
TEST(Bf16Packing, InBandsMatchesPackingAtOnce) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{192, 192}, {97, 26}, {26, 97}, {33, 1}}) {
    std::vector<float> w(static_cast<size_t>(k * n));
    for (auto& number : w) number = normal(random);
    std::vector<Bf16> halves(w.size());
    bf16_row_ops().round(w.data(), k * n, halves.data());
    for (const bool transposed : {false, true})
      for (const int64_t band : {32, 64}) {
        const auto size = static_cast<size_t>(transposed ? packed_size(n, k) : packed_size(k, n));
        std::vector<Bf16> at_once(size), in_bands(size, Bf16{7}), from_halves(size, Bf16{7});
        if (transposed)
          bf16_row_ops().pack_transposed(w.data(), n, n, k, at_once.data());
        else
          bf16_row_ops().pack(w.data(), n, k, n, at_once.data());
        for (int64_t row = 0; row < k; row += band) {
          const int64_t count = std::min(band, k - row);
          pack_band(w.data(), row, count, k, n, transposed, in_bands.data());
          pack_band(halves.data(), row, count, k, n, transposed, from_halves.data());
        }
        for (size_t i = 0; i < size; ++i) {
          ASSERT_EQ(in_bands[i].bits, at_once[i].bits) << k << "x" << n << ", " << i;
          ASSERT_EQ(from_halves[i].bits, at_once[i].bits) << k << "x" << n << ", " << i;
        }
      }
  }
}

TEST(Bf16Packing, IsUndoneByUnpacking) {
  for (const Isa isa : available_isas())
    for (const Shape& shape : kShapes) {
      const int64_t k = shape.k, n = shape.n;
      std::mt19937 random(6);
      const Bf16Matrix w(k, n, 3, 1, Bf16Matrix::Kind::normal, random);
      const auto tiles = w.packed(k, isa);
      std::vector<float> out(static_cast<size_t>(k * (n + 2)), 9.0f);
      bf16_row_ops(isa).unpack(tiles.data(), PackedMatrix(tiles.data(), k, n).column_stride, k, n,
                               out.data(), n + 2);
      int64_t different = 0;
      for (int64_t row = 0; row < k; ++row)
        for (int64_t column = 0; column < n + 2; ++column)
          different += out[static_cast<size_t>(row * (n + 2) + column)] !=
                       (column < n ? w.at(row, column) : 9.0f);
      EXPECT_EQ(different, 0) << name_of(kIsas, isa) << " " << k << "x" << n;
    }
}

TEST(Bf16Packing, TransposePadsWithZeros) {
  for (const Isa isa : available_isas())
    for (const Shape& shape : kShapes) {
      const int64_t rows = shape.k, cols = shape.n, padded = (rows + 31) / 32 * 32,
                    ldout = padded + 4;
      std::mt19937 random(7);
      const Bf16Matrix x(rows, cols, 5, 3, Bf16Matrix::Kind::normal, random);
      std::vector<Bf16> out(static_cast<size_t>(cols * ldout), Bf16{7});
      bf16_row_ops(isa).transpose(x.data(), x.stride(), rows, cols, out.data(), ldout);
      int64_t different = 0;
      for (int64_t c = 0; c < cols; ++c)
        for (int64_t r = 0; r < ldout; ++r) {
          const uint16_t expected = r < rows     ? x.data()[r * x.stride() + c].bits
                                    : r < padded ? 0
                                                 : 7;
          different += out[static_cast<size_t>(c * ldout + r)].bits != expected;
        }
      EXPECT_EQ(different, 0) << name_of(kIsas, isa) << " " << rows << "x" << cols;
    }
}

TEST(Bf16Packing, RoundRowsPadsWithZeros) {
  for (const Isa isa : available_isas())
    for (const Shape& shape : kShapes)
      for (const bool transposed : {false, true}) {
        const int64_t rows = shape.k, cols = shape.n, ldx = cols + 3;
        const int64_t height = transposed ? cols : rows, width = transposed ? rows : cols;
        const int64_t padded = (width + 31) / 32 * 32, ldout = padded + 4;
        const auto x = numbers_of(shape, ldx);
        std::vector<Bf16> out(static_cast<size_t>(height * ldout), Bf16{7});
        const auto& ops = bf16_row_ops(isa);
        (transposed ? ops.round_transposed : ops.round_rows)(x.data(), ldx, rows, cols, out.data(),
                                                             ldout);
        int64_t different = 0;
        for (int64_t r = 0; r < height; ++r)
          for (int64_t c = 0; c < ldout; ++c) {
            const auto index = static_cast<size_t>(transposed ? c * ldx + r : r * ldx + c);
            const uint16_t expected = c < width ? bf16_of(x[index]).bits : c < padded ? 0 : 7;
            different += out[static_cast<size_t>(r * ldout + c)].bits != expected;
          }
        EXPECT_EQ(different, 0) << name_of(kIsas, isa) << " " << rows << "x" << cols
                                << (transposed ? " transposed" : "");
      }
}

}  // namespace
}  // namespace translution::kernels
