#pragma once

#include <cstdint>

namespace translution::kernels {

/// C = op(A) op(B) + beta C, row-major, on the calling thread. op(A) is m x k, op(B) k x n;
/// lda, ldb, ldc are the row strides of the stored A, B and C.
///
/// For float, uses libxsmm if both n and k are below 64, otherwise oneDNN (0.9 to 1.0 of the SGEMM
/// rate from 64 rows on), otherwise the BLAS; libraries that the build did not find are skipped.
/// For double, uses the BLAS.
///
/// Signals must not interrupt oneDNN: callers block them with SignalsWait of ops/parallel.h, as
/// parallel_each does.
template <typename T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
          int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

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

/// Sets MKL's own number of threads for products of the calling thread and returns the previous
/// one; 0: as many as OpenMP has. Returns 0 if the BLAS is not MKL.
int set_mkl_threads(int threads);

/// Number of channels below which many small products are faster than one large product; 0 in a
/// build without libxsmm.
int64_t small_gemm_limit();

/// FLOPs of all products since the program started: 2*m*n*k each.
int64_t gemm_flops();
/// Adds the FLOPs of products that are computed elsewhere.
void count_gemm_flops(int64_t flops);

/// The libraries that this build uses for float: "oneDNN + libxsmm", "libxsmm + MKL", "BLAS"…
const char* gemm_libraries();

}  // namespace translution::kernels
