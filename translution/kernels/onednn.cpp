#include "translution/kernels/onednn.h"

#ifdef TRANSLUTION_HAS_DNNL
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#endif

namespace translution::kernels {

#ifdef TRANSLUTION_HAS_DNNL
bool limit_onednn() { return dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) == dnnl_success; }

bool is_our_onednn(const void* function) {
  return function == reinterpret_cast<const void*>(&dnnl_set_max_cpu_isa);
}

std::string onednn_isa() {
  const std::string name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa()), prefix = "cpu_isa_";
  return name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
}
#else
bool limit_onednn() { return true; }

bool is_our_onednn(const void*) { return false; }

std::string onednn_isa() { return ""; }
#endif

}  // namespace translution::kernels
