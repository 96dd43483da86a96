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

}  // namespace translution::kernels
