#include "translution/train/device.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <torch/cuda.h>

#include <algorithm>

#include "translution/core/error.h"
#include "translution/core/message.h"

namespace translution {

using namespace detail;

namespace {

constexpr const char* kCuda = "cuda";

bool is_index(const std::string& text) {
  return !text.empty() && text.size() <= 2 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

c10::Device find_cuda(const std::string& name) {
  ensure(at::globalContext().hasCUDART(), "device ", name,
         ": this LibTorch was built without CUDA; use cpu");
  const auto count = static_cast<int>(torch::cuda::device_count());
  ensure(count > 0, "device ", name, ": LibTorch finds no CUDA device on this machine; use cpu");
  const size_t colon = name.find(':');
  const int index = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
  ensure(index < count, "device ", name, ": expected cuda:0 to cuda:", count - 1,
         ", the devices of this machine");
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace

c10::Device find_device(const std::string& name) {
  if (name == "cpu") return c10::DeviceType::CPU;
  if (name == "mps") {
    ensure(at::hasMPS(), "device mps: this LibTorch was built without MPS; use cpu");
    return c10::DeviceType::MPS;
  }
  const size_t colon = name.find(':');
  require(name.substr(0, colon) == kCuda &&
              (colon == std::string::npos || is_index(name.substr(colon + 1))),
          "device: expected cpu, cuda, cuda:N or mps, got ", in_quotes(name));
  return find_cuda(name);
}

void wait_for(c10::Device device) {
  // A device executes calls in order, so reading a result back waits for all earlier calls.
  if (!device.is_cpu()) at::zeros({1}, device).item();
}

}  // namespace translution
