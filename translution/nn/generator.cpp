#include "translution/nn/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

namespace translution {

at::Generator seeded_generator(uint64_t seed, const at::Device& device) {
  if (device.is_cpu()) return at::make_generator<at::CPUGeneratorImpl>(seed);
  auto generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator;
}

}  // namespace translution
