#pragma once

// Precompiled for the library, the program and the tests: Torch costs seconds per file otherwise.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>
#include <torch/nn.h>
