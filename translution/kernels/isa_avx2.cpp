#define TRANSLUTION_VECTOR_BYTES 32
#include "translution/kernels/isa.h"
#include "translution/kernels/row_ops-inl.h"

namespace translution::kernels {

const RowOps<float>& row_ops_avx2_float() { return kOps<float>; }
const RowOps<double>& row_ops_avx2_double() { return kOps<double>; }

}  // namespace translution::kernels
