#pragma once

#include "translution/kernels/bf16.h"
#include "translution/kernels/gemm.h"
#include "translution/kernels/row_ops.h"

namespace translution::kernels {

// Each isa_*.cpp defines its own; only dispatch.cpp calls them.
const RowOps<float>& row_ops_scalar_float();
const RowOps<double>& row_ops_scalar_double();
const Bf16RowOps& bf16_row_ops_scalar();
const RowOps<float>& row_ops_avx2_float();
const RowOps<double>& row_ops_avx2_double();
const Bf16RowOps& bf16_row_ops_avx2();
const RowOps<float>& row_ops_avx512_float();
const RowOps<double>& row_ops_avx512_double();
const Bf16RowOps& bf16_row_ops_avx512();
const Bf16RowOps& bf16_row_ops_avx512_bf16();
void multiply_scalar(const Gemm<float>& product);
void multiply_scalar(const Gemm<double>& product);
void multiply_avx2(const Gemm<float>& product);
void multiply_avx2(const Gemm<double>& product);
void multiply_avx512(const Gemm<float>& product);
void multiply_avx512(const Gemm<double>& product);

// C [m,n] = A [m,k] B, or C += A B if `accumulate`. B is packed, see PackedMatrix.
struct Bf16Product {
  int64_t m, n, k;
  const Bf16* a;
  int64_t lda;
  const Bf16* b;
  int64_t column_stride;
  float* c;
  int64_t ldc;
  bool accumulate;
  Bf16* rounded = nullptr;  // if set, receives the rounded result instead of c; row stride ldc
};

using RoundRow = void (*)(const float* x, int64_t count, Bf16* out);

// The functions below are called by bf16.cpp only.
void multiply_avx512_bf16(const Bf16Product& product);

// `scratch` has tile_scratch_size(m, k) elements. The calling thread's tiles must be configured.
void multiply_amx(const Bf16Product& product, Bf16* scratch, RoundRow round);
void configure_tiles();
void release_tiles();

// Elements of A that are copied, with zero padding, because their rows or columns do not fill a
// tile.
int64_t tile_scratch_size(int64_t m, int64_t k);

}  // namespace translution::kernels
