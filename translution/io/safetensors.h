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

/// Converts each tensor right after it is read.
using TensorConversion =
    std::function<torch::Tensor(const std::string& name, const torch::Tensor&)>;

/// Loads all tensors of the file to the CPU. They own their memory (the file is not mapped and may
/// change or be deleted afterwards). Throws std::runtime_error for a file that violates the format;
/// allocates tensors only for bytes that the file has. With `convert`, only its results stay in
/// memory.
TRANSLUTION_API Safetensors load_safetensors(const std::string& path,
                                             const TensorConversion& convert = {});

/// Reads only the header: names, types and shapes, and the metadata.
TRANSLUTION_API SafetensorsHeader load_safetensors_header(const std::string& path);

/// Replaces the file atomically. The same tensors give the same bytes: tensors are sorted by
/// element size, largest first, so that each is aligned, then by name. Accepts any strides and any
/// device; contiguous CPU tensors are written without a copy.
TRANSLUTION_API void save_safetensors(const std::string& path, const NamedTensors& tensors,
                                      const SafetensorsMetadata& metadata = {});

/// Passes the same bytes to `sink`, piece by piece.
TRANSLUTION_API void write_safetensors(const NamedTensors& tensors,
                                       const SafetensorsMetadata& metadata,
                                       const std::function<void(std::string_view)>& sink);

}  // namespace translution
