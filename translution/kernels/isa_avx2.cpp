#define TRANSLUTION_VECTOR_BYTES 32
#include "translution/kernels/bf16_rows-inl.h"
#include "translution/kernels/gemm-inl.h"
#include "translution/kernels/isa.h"

namespace translution::kernels {

const RowOps<float>& row_ops_avx2_float() { return kOps<float>; }
const RowOps<double>& row_ops_avx2_double() { return kOps<double>; }
const Bf16RowOps& bf16_row_ops_avx2() { return kBf16Ops; }
void multiply_avx2(const Gemm<float>& product) { multiply_matrices(product); }
void multiply_avx2(const Gemm<double>& product) { multiply_matrices(product); }

}  // namespace translution::kernels
