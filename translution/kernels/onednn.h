#pragma once

#include <string>

namespace translution::kernels {

/// Lets the oneDNN that gemm() calls use at most AVX512_CORE_BF16. False if it is too late: oneDNN
/// reads its limit once, at the first product. True in a build without oneDNN.
bool limit_onednn();

/// Whether `function` is the dnnl_set_max_cpu_isa that limit_onednn() calls.
bool is_our_onednn(const void* function);

/// The most that oneDNN uses here, as in "avx512_core_bf16"; empty in a build without oneDNN. Fixes
/// the limit.
std::string onednn_isa();

}  // namespace translution::kernels
