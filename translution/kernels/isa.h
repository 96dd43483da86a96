#pragma once

#include "translution/kernels/row_ops.h"

namespace translution::kernels {

// One pair for each isa_*.cpp; only dispatch.cpp calls them.
const RowOps<float>& row_ops_scalar_float();
const RowOps<double>& row_ops_scalar_double();
const RowOps<float>& row_ops_avx2_float();
const RowOps<double>& row_ops_avx2_double();
const RowOps<float>& row_ops_avx512_float();
const RowOps<double>& row_ops_avx512_double();

}  // namespace translution::kernels
