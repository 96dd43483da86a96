#pragma once

#include <cstdint>

namespace translution::kernels {

/// C = op(A) op(B) + beta C, row-major, on the calling thread. op(A) is m x k, op(B) k x n;
/// lda, ldb, ldc are the row strides of A, B and C as they are stored.
///
/// Float goes to oneDNN where the result is wide (it reaches 0.9 to 1.0 of the SGEMM rate from 64
/// rows on), to libxsmm where both n and k are below 64, and to the BLAS where neither was found at
/// build time; double goes to the BLAS.
///
/// oneDNN must not be disturbed by signals: callers hold them back with SignalsWait of
/// ops/parallel.h, as parallel_each does.
template <typename T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
          int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

/// A product of narrow matrices that is made many times, C = op(A) B + beta C as above: its code is
/// looked up once. FLOPs are counted when it goes.
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
  int64_t made_ = 0;
};

/// Below so many channels, many small products are faster than one large; 0 in a build without the
/// library that makes code for them.
int64_t small_gemm_limit();

/// FLOPs of all products since the program started: 2*m*n*k each.
int64_t gemm_flops();
/// Adds those of products that are made elsewhere.
void count_gemm_flops(int64_t made);

/// "oneDNN + libxsmm", "BLAS"…: what this build uses for float.
const char* gemm_libraries();

}  // namespace translution::kernels
