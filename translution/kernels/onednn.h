#pragma once

#include <string>

namespace translution::kernels {

/// Limits the oneDNN that gemm() calls to AVX512_CORE_BF16. Returns false if it is too late: oneDNN
/// reads its limit once, at the first product. Returns true in a build without oneDNN.
bool limit_onednn();

/// Whether `function` is the dnnl_set_max_cpu_isa that limit_onednn() calls.
bool is_our_onednn(const void* function);

/// The strongest instruction set that oneDNN uses, such as "avx512_core_bf16"; empty in a build
/// without oneDNN. After this call the limit can no longer change.
std::string onednn_isa();

}  // namespace translution::kernels
