// Products of bfloat16 in tiles, templated on a policy `Tiles`: the AMX instructions in
// isa_amx.cpp, an emulation in the tests. There are eight tiles of 16 rows of 64 bytes each. The
// policy has
//   load<t>(p, stride), store<t>(p, stride)   move tile t; the row stride is in bytes
//   zero<t>()                                 clears tile t
//   multiply<c, a, b>()                       tdpbf16ps: c += a b

#include <cstring>

#include "translution/kernels/isa.h"

namespace translution::kernels {
namespace {

constexpr int64_t kTileRows = 16;

int64_t rounded_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// The source of the tiles of A: its own rows, and from row `first_copied` on a zero-padded copy.
struct TileRows {
  const Bf16* a;
  int64_t lda;
  int64_t first_copied;
  const Bf16* copy;
  int64_t copy_stride;
};

// If the columns of A do not fill tiles, all of A is copied, otherwise only the last rows.
int64_t first_copied_row(int64_t m, int64_t k) {
  return k % kTileDepth == 0 ? m / kTileRows * kTileRows : 0;
}

TileRows padded_rows(const Bf16Product& p, Bf16* scratch) {
  const TileRows rows{p.a, p.lda, first_copied_row(p.m, p.k), scratch, rounded_up(p.k, kTileDepth)};
  const int64_t copied = rounded_up(p.m, kTileRows) - rows.first_copied;
  if (copied == 0) return rows;
  std::memset(scratch, 0, copied * rows.copy_stride * sizeof *scratch);
  for (int64_t r = rows.first_copied; r < p.m; ++r)
    std::memcpy(scratch + (r - rows.first_copied) * rows.copy_stride, p.a + r * p.lda,
                p.k * sizeof *scratch);
  return rows;
}

// Computes up to 2 x 2 tiles of C: two loads of A and two of B feed four multiplications.
template <typename Tiles>
class TileBlock {
 public:
  TileBlock(Tiles& tiles, const Bf16Product& product, const TileRows& rows, RoundRow round)
      : tiles_(tiles), p_(product), rows_(rows), round_(round) {}

  template <int rows, int columns>
  void multiply(int64_t row, int64_t column) {
    begin<0, 0, rows, columns>(row, column), begin<0, 1, rows, columns>(row, column);
    begin<1, 0, rows, columns>(row, column), begin<1, 1, rows, columns>(row, column);
    const Bf16* b = p_.b + column / kTileColumns * p_.column_stride;
    for (int64_t k = 0; k < p_.k; k += kTileDepth, b += kTileSize) {
      load_a<4>(row, k);
      if constexpr (rows == 2) load_a<5>(row + kTileRows, k);
      tiles_.template load<6>(b, kRowBytes);
      if constexpr (columns == 2) tiles_.template load<7>(b + p_.column_stride, kRowBytes);
      tiles_.template multiply<0, 4, 6>();
      if constexpr (columns == 2) tiles_.template multiply<1, 4, 7>();
      if constexpr (rows == 2) tiles_.template multiply<2, 5, 6>();
      if constexpr (rows == 2 && columns == 2) tiles_.template multiply<3, 5, 7>();
    }
    finish<0, 0, rows, columns>(row, column), finish<0, 1, rows, columns>(row, column);
    finish<1, 0, rows, columns>(row, column), finish<1, 1, rows, columns>(row, column);
  }

 private:
  static constexpr int64_t kRowBytes = kTileDepth * sizeof(Bf16);

  // The part of C that a tile of sums covers; may be smaller than the tile.
  struct Part {
    float* c;
    int64_t rows, columns;
    bool is_full() const { return rows == kTileRows && columns == kTileColumns; }
  };

  Part part(int64_t row, int64_t column) const {
    return {p_.c + row * p_.ldc + column, smaller(p_.m - row, kTileRows),
            smaller(p_.n - column, kTileColumns)};
  }

  static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

  template <int tile>
  void load_a(int64_t row, int64_t k) {
    if (row < rows_.first_copied)
      tiles_.template load<tile>(rows_.a + row * rows_.lda + k, rows_.lda * sizeof(Bf16));
    else
      tiles_.template load<tile>(rows_.copy + (row - rows_.first_copied) * rows_.copy_stride + k,
                                 rows_.copy_stride * sizeof(Bf16));
  }

  template <int i, int j, int rows, int columns>
  void begin(int64_t row, int64_t column) {
    if constexpr (i < rows && j < columns) {
      if (!p_.accumulate) return tiles_.template zero<2 * i + j>();
      const Part to = part(row + i * kTileRows, column + j * kTileColumns);
      if (to.is_full()) return tiles_.template load<2 * i + j>(to.c, p_.ldc * sizeof(float));
      std::memset(edge_, 0, sizeof edge_);
      for (int64_t r = 0; r < to.rows; ++r)
        std::memcpy(edge_[r], to.c + r * p_.ldc, to.columns * sizeof(float));
      tiles_.template load<2 * i + j>(edge_, kRowBytes);
    }
  }

  // Stores a tile of sums to a 1 KB buffer, rounds it and copies it to the result.
  template <int tile>
  void finish_rounded(int64_t row, int64_t column) {
    Bf16 lines[kTileRows][kTileColumns];
    tiles_.template store<tile>(edge_, kRowBytes);
    round_(edge_[0], kTileRows * kTileColumns, lines[0]);
    const int64_t count = smaller(p_.m - row, kTileRows);
    const int64_t width = smaller(p_.n - column, kTileColumns) * sizeof(Bf16);
    for (int64_t r = 0; r < count; ++r)
      std::memcpy(p_.rounded + (row + r) * p_.ldc + column, lines[r], width);
  }

  template <int i, int j, int rows, int columns>
  void finish(int64_t row, int64_t column) {
    if constexpr (i < rows && j < columns) {
      if (p_.rounded)
        return finish_rounded<2 * i + j>(row + i * kTileRows, column + j * kTileColumns);
      const Part to = part(row + i * kTileRows, column + j * kTileColumns);
      if (to.is_full()) return tiles_.template store<2 * i + j>(to.c, p_.ldc * sizeof(float));
      tiles_.template store<2 * i + j>(edge_, kRowBytes);
      for (int64_t r = 0; r < to.rows; ++r)
        std::memcpy(to.c + r * p_.ldc, edge_[r], to.columns * sizeof(float));
    }
  }

  Tiles& tiles_;
  const Bf16Product& p_;
  const TileRows& rows_;
  const RoundRow round_;
  alignas(64) float edge_[kTileRows][kTileColumns];
};

// Multiplies all rows by the same columns of B before the next ones, as in isa_avx512_bf16.cpp.
template <typename Tiles>
void multiply_in_tiles(Tiles& tiles, const Bf16Product& p, Bf16* scratch, RoundRow round) {
  const TileRows rows = padded_rows(p, scratch);
  TileBlock<Tiles> block(tiles, p, rows, round);
  for (int64_t column = 0; column < p.n; column += 2 * kTileColumns)
    for (int64_t row = 0; row < p.m; row += 2 * kTileRows) {
      const bool tall = row + kTileRows < p.m, wide = column + kTileColumns < p.n;
      if (tall && wide)
        block.template multiply<2, 2>(row, column);
      else if (tall)
        block.template multiply<2, 1>(row, column);
      else if (wide)
        block.template multiply<1, 2>(row, column);
      else
        block.template multiply<1, 1>(row, column);
    }
}

}  // namespace
}  // namespace translution::kernels
