#include "translution/train/device.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "translution/train/evaluate.h"

namespace translution::testing {
namespace {

std::string refusal(const std::string& name) {
  try {
    find_device(name);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "was accepted";
}

TEST(Device, CpuIsAlwaysFound) { EXPECT_EQ(find_device("cpu"), torch::Device(torch::kCPU)); }

TEST(Device, UnknownNameIsRefused) {
  for (const std::string name : {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1 ",
                                 "cuda:100", "mps:0", "meta", "cuda,cpu"}) {
    EXPECT_THROW(find_device(name), std::invalid_argument) << name;
    EXPECT_EQ(refusal(name), "device: expected cpu, cuda, cuda:N or mps, got '" + name + "'");
  }
}

TEST(Device, MissingInThisLibTorchIsRefused) {
  if (at::globalContext().hasCUDART() || at::hasMPS())
    GTEST_SKIP() << "this LibTorch supports another device";
  for (const std::string name : {"cuda", "cuda:1"})
    EXPECT_EQ(refusal(name), "device " + name + ": this LibTorch was built without CUDA; use cpu");
  EXPECT_EQ(refusal("mps"), "device mps: this LibTorch was built without MPS; use cpu");
}

// The meta device represents any other device: its tensors cannot be mixed with CPU tensors.
TEST(Device, LossIsComputedOnTheDeviceOfTheLogits) {
  const auto logits = torch::zeros({3, 5}, torch::kMeta).requires_grad_();
  for (const auto& target : {torch::tensor({4, 0, 2}), torch::full({3, 5}, 0.2)}) {
    const auto loss = loss_of(logits, target, {0.1});
    EXPECT_TRUE(loss.is_meta() && loss.dim() == 0);
    loss.backward();
    EXPECT_TRUE(logits.grad().is_meta());
  }
}

}  // namespace
}  // namespace translution::testing
