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
  std::vector<int64_t> rows;  ///< query rows; empty: all
  Gradients gradients = Gradients::all;
  bool strided = false;  ///< x is not contiguous

  /// True if queries or keys are encoded and wide enough to be saved for backward.
  bool can_save_encodings() const;
};

/// Every method with its options, on every path from the layer to the kernels.
std::vector<LayerCase> every_case();

/// The same in precision bf16, with fewer layouts.
std::vector<LayerCase> every_bf16_case();

}  // namespace translution::testing
