#include "translution/kernels/isa.h"

namespace translution::kernels {

template <>
const RowOps<float>& row_ops<float>(Isa isa) {
#ifdef TRANSLUTION_X86
  if (isa >= Isa::avx512) return row_ops_avx512_float();
  if (isa == Isa::avx2) return row_ops_avx2_float();
#endif
  (void)isa;
  return row_ops_scalar_float();
}

template <>
const RowOps<double>& row_ops<double>(Isa isa) {
#ifdef TRANSLUTION_X86
  if (isa >= Isa::avx512) return row_ops_avx512_double();
  if (isa == Isa::avx2) return row_ops_avx2_double();
#endif
  (void)isa;
  return row_ops_scalar_double();
}

template <typename T>
GemmFunction<T> gemm_function(Isa isa) {
#ifdef TRANSLUTION_X86
  if (isa >= Isa::avx512) return multiply_avx512;
  if (isa == Isa::avx2) return multiply_avx2;
#endif
  (void)isa;
  return multiply_scalar;
}

template GemmFunction<float> gemm_function<float>(Isa isa);
template GemmFunction<double> gemm_function<double>(Isa isa);

const Bf16RowOps& bf16_row_ops(Isa isa) {
#ifdef TRANSLUTION_X86
  if (isa >= Isa::avx512_bf16) return bf16_row_ops_avx512_bf16();
  if (isa == Isa::avx512) return bf16_row_ops_avx512();
  if (isa == Isa::avx2) return bf16_row_ops_avx2();
#endif
  (void)isa;
  return bf16_row_ops_scalar();
}

const Bf16RowOps& bf16_row_ops() {
  static const Bf16RowOps& ops = bf16_row_ops(chosen_isa());
  return ops;
}

}  // namespace translution::kernels
