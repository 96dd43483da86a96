#define TRANSLUTION_VECTOR_BYTES 64
#include "translution/kernels/bf16_rows-inl.h"
#include "translution/kernels/gemm-inl.h"
#include "translution/kernels/isa.h"

namespace translution::kernels {

const RowOps<float>& row_ops_avx512_float() { return kOps<float>; }
const RowOps<double>& row_ops_avx512_double() { return kOps<double>; }
const Bf16RowOps& bf16_row_ops_avx512() { return kBf16Ops; }
void multiply_avx512(const Gemm<float>& product) { multiply_matrices(product); }
void multiply_avx512(const Gemm<double>& product) { multiply_matrices(product); }

}  // namespace translution::kernels
