#pragma once

#include <cstdint>

#include "translution/core/cpu_info.h"

namespace translution::kernels {

/// C = op(A) op(B) + beta C, row-major. op(A) is m x k, op(B) k x n; lda, ldb, ldc are the row
/// strides of the stored A, B and C.
template <typename T>
struct Gemm {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
};

/// The product on the calling thread. For float, uses libxsmm if both n and k are below 64 and
/// oneDNN otherwise, where the build found them; else our own kernels (gemm-inl.h), which have 0.93
/// to 1.0 of oneDNN's rate.
///
/// Signals must not interrupt oneDNN: callers block them with SignalsWait of ops/parallel.h, as
/// parallel_each does.
template <typename T>
void gemm(const Gemm<T>& product);
template <typename T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
          int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  gemm<T>({transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc});
}

/// Our own kernels for an instruction set.
template <typename T>
using GemmFunction = void (*)(const Gemm<T>& product);
template <typename T>
GemmFunction<T> gemm_function(Isa isa);

/// A product of narrow matrices that is computed many times, C = op(A) B + beta C as above. Its
/// code is looked up once. FLOPs are added in the destructor.
template <typename T>
class SmallGemm {
 public:
  SmallGemm(bool transpose_a, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, T beta,
            int64_t ldc);
  ~SmallGemm();
  SmallGemm(const SmallGemm&) = delete;
  SmallGemm& operator=(const SmallGemm&) = delete;

  void operator()(const T* a, const T* b, T* c);

 private:
  const bool transpose_a_;
  const int64_t m_, n_, k_, lda_, ldb_, ldc_;
  const T beta_;
  void (*code_)(const T* b, const T* a, T* c, ...) = nullptr;
  int64_t calls_ = 0;
};

/// Number of channels below which many small products are faster than one large product; 0 in a
/// build without libxsmm.
int64_t small_gemm_limit();

/// FLOPs of all products since the program started: 2*m*n*k each.
int64_t gemm_flops();
/// Adds the FLOPs of products that are computed elsewhere.
void count_gemm_flops(int64_t flops);

/// The libraries that this build uses for float: "oneDNN + libxsmm", "own kernels"…
const char* gemm_libraries();

}  // namespace translution::kernels
