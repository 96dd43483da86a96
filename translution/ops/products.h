#pragma once

#include <cstdint>
#include <memory>

#include "translution/core/export.h"
#include "translution/core/precision.h"

namespace translution {

/// The libraries that multiply float32 matrices, such as "oneDNN + libxsmm".
TRANSLUTION_API const char* product_libraries();

/// Measures the rate of matrix products on this machine, with products like those of the layers. In
/// float32 each thread multiplies 1024x1024 by 1024x1024. In bf16 it multiplies 448 rows by packed
/// 192x192 matrices, a different matrix in each product.
class TRANSLUTION_API ProductRate {
 public:
  ProductRate(Precision precision, int threads);
  ~ProductRate();

  /// GFLOP/s of all threads together, measured by this call. Takes some hundredths of a second.
  double gflops();
  /// The best of five measurements.
  double best_gflops();

  struct Products;  ///< operands and products in one precision

 private:
  std::unique_ptr<Products> products_;
};

}  // namespace translution
