#include "translution/weights/sizes.h"

#include "translution/core/error.h"
#include "translution/core/message.h"

namespace translution {

using namespace detail;

std::vector<int64_t> sizes_of(const NamedTensors& tensors, const std::string& name, int64_t dims,
                              const std::string& source) {
  const auto found = tensors.find(name);
  ensure(found != tensors.end(), source, ": ", in_quotes(name),
         " is missing; these are not weights of this format");
  ensure(found->second.dim() == dims, source, ": ", in_quotes(name), " is ", found->second.sizes(),
         ", expected ", dims, " dimensions");
  return found->second.sizes().vec();
}

int64_t count_layers(const NamedTensors& tensors, const std::string& prefix) {
  int64_t layers = 0;
  for (;; ++layers) {
    const std::string name = join(prefix, layers, ".");
    const auto next = tensors.lower_bound(name);
    if (next == tensors.end() || next->first.rfind(name, 0) != 0) return layers;
  }
}

}  // namespace translution
