#pragma once

// Matrix products, written once on GCC vectors and compiled under each instruction set's flags, as
// row_ops-inl.h is.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "translution/kernels/gemm.h"
#include "translution/kernels/row_ops-inl.h"

namespace translution::kernels {
namespace {

// A tile of C stays in registers: 8 x 3 vectors of 32 registers, or 4 x 3 of 16.
constexpr int64_t kTileRows = TRANSLUTION_VECTOR_BYTES == 64 ? 8 : 4;
constexpr int64_t kTileVectors = 3;
// The part of A that all panels of B use stays in the second-level cache.
constexpr int64_t kBlockRows = 192, kBlockInner = 256;
// With fewer rows, copying B takes longer than reading it with its stride.
constexpr int64_t kRowsToPack = 32;

// Element (r, i) of A is a[r * row + i * step].
template <typename T>
struct Tile {
  const T* a;
  int64_t row, step;
  const T* b;
  int64_t ldb, inner;
  T beta;
  T* c;
  int64_t ldc;
};

template <typename T, int64_t rows, int64_t vectors>
void multiply_tile(const Tile<T>& tile) {
  using V = Vector<T>;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v)
      __builtin_prefetch(tile.c + r * tile.ldc + v * V::kLanes, 1);
  typename V::Type sums[rows][vectors] = {};
  const T *a = tile.a, *b = tile.b;
  for (int64_t i = 0; i < tile.inner; ++i, a += tile.step, b += tile.ldb) {
    typename V::Type right[vectors];
#pragma GCC unroll 4
    for (int64_t v = 0; v < vectors; ++v) right[v] = V::load(b + v * V::kLanes);
#pragma GCC unroll 8
    for (int64_t r = 0; r < rows; ++r) {
      const auto left = V::all(a[r * tile.row]);
#pragma GCC unroll 4
      for (int64_t v = 0; v < vectors; ++v) sums[r][v] += left * right[v];
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int64_t v = 0; v < vectors; ++v) {
      T* const c = tile.c + r * tile.ldc + v * V::kLanes;
      V::store(c, tile.beta == 0 ? sums[r][v] : V::load(c) * tile.beta + sums[r][v]);
    }
}

template <typename T>
using TileFunction = void (*)(const Tile<T>&);

template <typename T, int64_t vectors, size_t... r>
TileFunction<T> tile_function(int64_t rows, std::index_sequence<r...>) {
  static constexpr TileFunction<T> functions[] = {multiply_tile<T, r + 1, vectors>...};
  return functions[rows - 1];
}

template <typename T>
TileFunction<T> tile_function(int64_t rows, int64_t vectors) {
  constexpr auto all_rows = std::make_index_sequence<kTileRows>();
  if (vectors == 1) return tile_function<T, 1>(rows, all_rows);
  if (vectors == 2) return tile_function<T, 2>(rows, all_rows);
  return tile_function<T, 3>(rows, all_rows);
}

// The columns [first, first + count) of B, filled up with zeros to whole vectors.
struct Panel {
  int64_t first, count, vectors;
};

// [inner, width] of op(B), whose element (0, 0) is at b.
template <typename T>
void pack_panel(bool transposed, const T* b, int64_t ldb, int64_t inner, int64_t count,
                int64_t width, T* out) {
  if (transposed)
    transpose<T>(b, count, ldb, inner, 1, 0, out, width);
  else if (count == width)
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t j = 0; j < width; j += Vector<T>::kLanes)
        Vector<T>::store(out + i * width + j, Vector<T>::load(b + i * ldb + j));
  else
    for (int64_t i = 0; i < inner; ++i)
      std::memcpy(out + i * width, b + i * ldb, count * sizeof(T));
  if (count < width)
    for (int64_t i = 0; i < inner; ++i)
      std::fill(out + i * width + count, out + (i + 1) * width, T(0));
}

// One panel of C: `tile` has its first rows, which `rows` continue. Tiles have equally many rows.
template <typename T>
void multiply_panel(Tile<T> tile, int64_t rows, const Panel& panel) {
  constexpr int64_t kLanes = Vector<T>::kLanes;
  alignas(64) T edge[kTileRows * kTileVectors * kLanes];
  const int64_t width = panel.vectors * kLanes, tiles = (rows + kTileRows - 1) / kTileRows;
  const T* const a = tile.a;
  T* const c = tile.c;
  const T beta = tile.beta;
  const int64_t ldc = tile.ldc;
  if (panel.count < width) tile.c = edge, tile.ldc = width, tile.beta = 0;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = rows * t / tiles, count = rows * (t + 1) / tiles - first;
    tile.a = a + first * tile.row;
    if (panel.count == width) tile.c = c + first * ldc;
    tile_function<T>(count, panel.vectors)(tile);
    if (panel.count == width) continue;
    for (int64_t r = 0; r < count; ++r) {
      const T* const from = edge + r * width;
      T* const to = c + (first + r) * ldc;
      if (beta == 0)
        std::memcpy(to, from, panel.count * sizeof(T));
      else
        for (int64_t j = 0; j < panel.count; ++j) to[j] = to[j] * beta + from[j];
    }
  }
}

/// See gemm() in gemm.h. The sum of an element has the same order for any m and n.
template <typename T>
void multiply_matrices(const Gemm<T>& p) {
  constexpr int64_t kLanes = Vector<T>::kLanes;
  alignas(64) T packed[kBlockInner * kTileVectors * kLanes];
  const int64_t vectors = (p.n + kLanes - 1) / kLanes;
  const int64_t panels = (vectors + kTileVectors - 1) / kTileVectors;
  for (int64_t m = 0; m < p.m; m += kBlockRows)
    for (int64_t i = 0; i == 0 || i < p.k; i += kBlockInner)  // k = 0: C = beta C
      for (int64_t j = 0; j < panels; ++j) {
        const int64_t rows = std::min(kBlockRows, p.m - m), inner = std::min(kBlockInner, p.k - i);
        const int64_t begin = vectors * j / panels, end = vectors * (j + 1) / panels;
        const Panel panel{begin * kLanes, std::min(end * kLanes, p.n) - begin * kLanes,
                          end - begin};
        const int64_t width = panel.vectors * kLanes;
        const T* b = p.b + (p.transpose_b ? panel.first * p.ldb + i : i * p.ldb + panel.first);
        int64_t ldb = p.ldb;
        if (p.transpose_b || panel.count < width || rows >= kRowsToPack) {
          pack_panel(p.transpose_b, b, ldb, inner, panel.count, width, packed);
          b = packed, ldb = width;
        }
        const int64_t row = p.transpose_a ? 1 : p.lda, step = p.transpose_a ? p.lda : 1;
        multiply_panel<T>({p.a + m * row + i * step, row, step, b, ldb, inner, i == 0 ? p.beta : 1,
                           p.c + m * p.ldc + panel.first, p.ldc},
                          rows, panel);
      }
}

}  // namespace
}  // namespace translution::kernels
