#include "translution/kernels/gemm.h"

#include <algorithm>
#include <atomic>
#include <type_traits>
#ifdef TRANSLUTION_HAS_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif
#ifdef TRANSLUTION_HAS_XSMM
#include <libxsmm.h>
#endif

namespace translution::kernels {
namespace {

std::atomic<int64_t> total_flops{0};

void count(int64_t m, int64_t n, int64_t k, int64_t times = 1) {
  count_gemm_flops(2 * m * n * k * times);
}

template <typename T>
void own(const Gemm<T>& product) {
  static const GemmFunction<T> multiply = gemm_function<T>(chosen_isa());
  multiply(product);
}

#ifdef TRANSLUTION_HAS_XSMM
constexpr int64_t kNarrow = 64;
// libxsmm would hand products with m * n * k above this to a BLAS.
constexpr int64_t kXsmmLimit = 64 * 64 * 64;

// libxsmm is column-major, so the operands are swapped. Its generated code does not support a
// transposed right operand, which is small here and is transposed first. Long products are split
// along their rows: 1024x24x24 takes 9.5 us instead of 47 us on a processor that OpenBLAS does not
// recognise.
void xsmm(const Gemm<float>& product) {
  auto [ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc] = product;
  float transposed[kNarrow * kNarrow];
  if (tb) {
    for (int64_t col = 0; col < n; ++col)
      for (int64_t row = 0; row < k; ++row) transposed[row * n + col] = b[col * ldb + row];
    b = transposed, ldb = n;
  }
  const char no_transpose = 'N', left = ta ? 'T' : 'N';
  const libxsmm_blasint rows = n, la = lda, lb = ldb, lc = ldc;
  const float alpha = 1;
  const int64_t length = ta ? k : m, piece = kXsmmLimit / (n * (ta ? m : k));
  for (int64_t begin = 0; begin < length; begin += piece) {
    const int64_t count = std::min(piece, length - begin);
    const libxsmm_blasint cols = ta ? m : count, inner = ta ? count : k;
    libxsmm_sgemm(&no_transpose, &left, &rows, &cols, &inner, &alpha, b, &lb, a, &la, &beta, c,
                  &lc);
    a += count * lda;
    if (ta)
      b += count * ldb, beta = 1;
    else
      c += count * ldc;
  }
}

// Null if libxsmm generates no code, as on an instruction set that it does not support.
template <typename T>
auto generate_small_gemm(bool ta, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, T beta,
                         int64_t ldc) {
  const libxsmm_blasint la = ldb, lb = lda, lc = ldc;
  const int flags = ta ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const T alpha = 1;
  if constexpr (std::is_same_v<T, float>)
    return libxsmm_smmdispatch(n, m, k, &la, &lb, &lc, &alpha, &beta, &flags, nullptr);
  else
    return libxsmm_dmmdispatch(n, m, k, &la, &lb, &lc, &alpha, &beta, &flags, nullptr);
}
#endif

}  // namespace

template <>
void gemm<float>(const Gemm<float>& product) {
  const auto& [ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc] = product;
  count(m, n, k);
  if (m * n * k == 0) return own(product);
#ifdef TRANSLUTION_HAS_XSMM
  if (n < kNarrow && (ta ? m : k) < kNarrow &&
      (!tb || k < kNarrow))  // b must fit into `transposed`
    return xsmm(product);
#endif
#ifdef TRANSLUTION_HAS_DNNL
  dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
#else
  own(product);
#endif
}

template <>
void gemm<double>(const Gemm<double>& product) {
  count(product.m, product.n, product.k);
  own(product);
}

template <typename T>
SmallGemm<T>::SmallGemm(bool transpose_a, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb,
                        T beta, int64_t ldc)
    : transpose_a_(transpose_a), m_(m), n_(n), k_(k), lda_(lda), ldb_(ldb), ldc_(ldc), beta_(beta) {
#ifdef TRANSLUTION_HAS_XSMM
  code_ = generate_small_gemm(transpose_a, m, n, k, lda, ldb, beta, ldc);
#endif
}

template <typename T>
SmallGemm<T>::~SmallGemm() {
  if (code_ != nullptr) count(m_, n_, k_, calls_);
}

template <typename T>
void SmallGemm<T>::operator()(const T* a, const T* b, T* c) {
  ++calls_;
  if (code_ != nullptr)
    code_(b, a, c);
  else
    gemm<T>(transpose_a_, false, m_, n_, k_, a, lda_, b, ldb_, beta_, c, ldc_);
}

template class SmallGemm<float>;
template class SmallGemm<double>;

int64_t small_gemm_limit() {
#ifdef TRANSLUTION_HAS_XSMM
  return kNarrow;
#else
  return 0;
#endif
}

void count_gemm_flops(int64_t flops) { total_flops.fetch_add(flops, std::memory_order_relaxed); }

int64_t gemm_flops() { return total_flops.load(std::memory_order_relaxed); }

const char* gemm_libraries() {
#if defined(TRANSLUTION_HAS_DNNL) && defined(TRANSLUTION_HAS_XSMM)
  return "oneDNN + libxsmm";
#elif defined(TRANSLUTION_HAS_DNNL)
  return "oneDNN";
#elif defined(TRANSLUTION_HAS_XSMM)
  return "own kernels + libxsmm";
#else
  return "own kernels";
#endif
}

}  // namespace translution::kernels
