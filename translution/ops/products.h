#pragma once

#include <cstdint>
#include <memory>

#include "translution/core/export.h"
#include "translution/core/precision.h"

namespace translution {

/// "oneDNN + libxsmm": the libraries that multiply matrices of float32.
TRANSLUTION_API const char* product_libraries();

/// How fast this machine multiplies matrices in a precision, as the layers multiply them. In
/// float32 every thread multiplies 1024x1024 by 1024x1024; in bf16, 448 rows by packed matrices of
/// 192x192, another matrix in each product.
class TRANSLUTION_API ProductRate {
 public:
  ProductRate(Precision precision, int threads);
  ~ProductRate();

  /// GFLOP/s of all threads together, measured now: some hundredths of a second.
  double gflops();
  /// The best of five measurements.
  double best_gflops();

  struct Products;  ///< of one precision

 private:
  std::unique_ptr<Products> products_;
};

}  // namespace translution
