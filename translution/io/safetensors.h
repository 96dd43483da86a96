#pragma once

#include <torch/types.h>

#include <functional>
#include <map>
#include <string>

#include "translution/core/export.h"
#include "translution/io/safetensors_header.h"

namespace translution {

using NamedTensors = std::map<std::string, torch::Tensor>;

struct Safetensors {
  NamedTensors tensors;
  SafetensorsMetadata metadata;
};

/// What a tensor of a file becomes as soon as it is read.
using TensorConversion =
    std::function<torch::Tensor(const std::string& name, const torch::Tensor&)>;

/// All tensors of the file, on the CPU, in memory of their own (not mapped, so the file may change
/// or vanish afterwards). A file that breaks a rule of the format is refused with one line; memory
/// is only taken for bytes that the file has. With `convert`, only what it returns stays in memory.
TRANSLUTION_API Safetensors load_safetensors(const std::string& path,
                                             const TensorConversion& convert = {});

/// The beginning of the file: names, types and shapes, and the metadata.
TRANSLUTION_API SafetensorsHeader load_safetensors_header(const std::string& path);

/// Replaces the file in one step. The same tensors give the same bytes: wide elements first, so
/// that each tensor is aligned, then by name. Any strides, any device; a contiguous tensor on the
/// CPU is written from where it is.
TRANSLUTION_API void save_safetensors(const std::string& path, const NamedTensors& tensors,
                                      const SafetensorsMetadata& metadata = {});

/// The same bytes, handed piece by piece to `sink`.
TRANSLUTION_API void write_safetensors(const NamedTensors& tensors,
                                       const SafetensorsMetadata& metadata,
                                       const std::function<void(std::string_view)>& sink);

}  // namespace translution
