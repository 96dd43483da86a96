#pragma once

#include <string>
#include <vector>

#include "translution/nn/attention.h"

namespace translution::testing {

/// Which tensors a case needs gradients of.
enum class Gradients { all, of_input, of_weights };

/// One call of a layer.
struct LayerCase {
  std::string name;
  AttentionOptions options;
  int64_t batch, tokens;
  at::ScalarType type;
  std::vector<int64_t> rows;  ///< of the queries; empty: all
  Gradients gradients = Gradients::all;
  bool strided = false;  ///< x is no contiguous tensor

  /// Are there encoded queries or keys, wide enough to be kept for backward?
  bool can_keep_encodings() const;
};

/// Every method with its choices, on every path from the layer to the kernels.
std::vector<LayerCase> every_case();

/// The same in precision bf16, with fewer layouts.
std::vector<LayerCase> every_bf16_case();

}  // namespace translution::testing
