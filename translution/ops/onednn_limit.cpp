#include "translution/ops/onednn_limit.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <cstdlib>

#include "translution/kernels/onednn.h"

namespace translution {

using namespace detail;

namespace {

// dnnl_set_max_cpu_isa(dnnl_cpu_isa_t), looked up by name: LibTorch may use oneDNN even if this
// library is built without it.
using SetMaxCpuIsa = int(int);
constexpr int kAvx512CoreBf16 = 0xe7, kSuccess = 0;

// The function that limits the oneDNN that LibTorch links or contains. Null if LibTorch does not
// export it.
SetMaxCpuIsa* torchs_set_max_cpu_isa() {
  Dl_info torch;
  if (dladdr(reinterpret_cast<void*>(&at::get_num_threads), &torch) == 0) return nullptr;
  void* const library = dlopen(torch.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = dlsym(library, "dnnl_set_max_cpu_isa");
  dlclose(library);  // LibTorch stays loaded anyway
  return reinterpret_cast<SetMaxCpuIsa*>(found);
}

const OnednnLimit kLimitAtLoad = limit_onednn(read_tile_info(), users_onednn_limit());

}  // namespace

std::string users_onednn_limit() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return join(name, "=", value);
  }
  return "";
}

OnednnLimit limit_onednn(const TileInfo& info, const std::string& users_choice) {
  if (amx_support(info) != Amx::hidden) return OnednnLimit::not_needed;
  if (!users_choice.empty()) return OnednnLimit::users_choice;
  if (!kernels::limit_onednn()) return OnednnLimit::too_late;
  if (!at::hasMKLDNN()) return OnednnLimit::set;
  auto* const limit = torchs_set_max_cpu_isa();
  if (limit == nullptr) return OnednnLimit::ours_only;
  const bool same = kernels::is_our_onednn(reinterpret_cast<const void*>(limit));
  return same || limit(kAvx512CoreBf16) == kSuccess ? OnednnLimit::set : OnednnLimit::too_late;
}

OnednnLimit onednn_limit() { return kLimitAtLoad; }

}  // namespace translution
