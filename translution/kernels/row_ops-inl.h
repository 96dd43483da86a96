#pragma once

// The row operations, written once on GCC vectors and compiled under each instruction set's flags
// by isa_*.cpp, which define TRANSLUTION_VECTOR_BYTES. Everything is in an anonymous namespace: a
// copy compiled for AVX-512 must never be the one that the linker keeps for the whole program.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "translution/kernels/norm-inl.h"
#include "translution/kernels/row_ops.h"
#include "translution/kernels/vector-inl.h"

namespace translution::kernels {
namespace {

constexpr int64_t kMinVectorBytes = 16;  // below this, one element at a time

// The remainder of a row is processed with successively narrower vectors: a head of
// alpha-Translution has 8 channels, half an AVX-512 vector, and a scalar loop over them takes
// longer than the surrounding products.

template <typename T, int64_t bytes = TRANSLUTION_VECTOR_BYTES>
T dot(const T* a, const T* b, int64_t n) {
  using V = Vector<T, bytes>;
  T total = 0;
  int64_t c = 0;
  if (n >= V::kLanes) {
    typename V::Type first{}, second{};  // two, to hide the latency of the additions
    for (; c + 2 * V::kLanes <= n; c += 2 * V::kLanes) {
      first += V::load(a + c) * V::load(b + c);
      second += V::load(a + c + V::kLanes) * V::load(b + c + V::kLanes);
    }
    if (c + V::kLanes <= n) {
      first += V::load(a + c) * V::load(b + c);
      c += V::kLanes;
    }
    total = V::sum(first + second);
  }
  if (c == n) return total;
  if constexpr (bytes > kMinVectorBytes) return total + dot<T, bytes / 2>(a + c, b + c, n - c);
  for (; c < n; ++c) total += a[c] * b[c];
  return total;
}

template <typename T, int64_t bytes = TRANSLUTION_VECTOR_BYTES>
void add_scaled(T weight, const T* x, int64_t n, T* out) {
  using V = Vector<T, bytes>;
  const auto w = V::all(weight);
  int64_t c = 0;
  for (; c + V::kLanes <= n; c += V::kLanes)
    V::store(out + c, V::load(out + c) + w * V::load(x + c));
  if (c == n) return;
  if constexpr (bytes > kMinVectorBytes)
    add_scaled<T, bytes / 2>(weight, x + c, n - c, out + c);
  else
    for (; c < n; ++c) out[c] += weight * x[c];
}

template <typename T, int64_t bytes = TRANSLUTION_VECTOR_BYTES>
void scale(T weight, const T* x, int64_t n, T* out) {
  using V = Vector<T, bytes>;
  const auto w = V::all(weight);
  int64_t c = 0;
  for (; c + V::kLanes <= n; c += V::kLanes) V::store(out + c, w * V::load(x + c));
  if (c == n) return;
  if constexpr (bytes > kMinVectorBytes)
    scale<T, bytes / 2>(weight, x + c, n - c, out + c);
  else
    for (; c < n; ++c) out[c] = weight * x[c];
}

// Heads of 8 channels, as in alpha-Translution, fill one vector each. Eight products are reduced
// together: the low and high halves of vectors a and b are interleaved (a0 b0 a1 b1 ..) and added,
// three times, until lane g holds the sum of product g. 448 rows of 3 heads: 4.0 -> 0.8 us; scaling
// them: 2.6 -> 0.8 us.
constexpr int64_t kShortHead = 8;

template <typename T>
bool is_short_head(int64_t width) {
  return width == kShortHead && kShortHead * sizeof(T) <= TRANSLUTION_VECTOR_BYTES;
}

template <typename T>
using ShortHead =
    Vector<T, kShortHead * sizeof(T) <= TRANSLUTION_VECTOR_BYTES ? kShortHead * sizeof(T)
                                                                 : TRANSLUTION_VECTOR_BYTES>;

template <typename Type>
Type interleaved_sum(Type a, Type b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11) +
         __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

template <typename T>
void short_head_dots(const T* a, const T* b, int64_t groups, T* out) {
  using V = ShortHead<T>;
  if constexpr (V::kLanes == kShortHead) {
    int64_t g = 0;
    for (; g + kShortHead <= groups; g += kShortHead, a += 64, b += 64) {
      typename V::Type p[kShortHead];
      for (int64_t k = 0; k < kShortHead; ++k) p[k] = V::load(a + 8 * k) * V::load(b + 8 * k);
      for (int64_t k = 0; k < 4; ++k) p[k] = interleaved_sum(p[k], p[k + 4]);
      for (int64_t k = 0; k < 2; ++k) p[k] = interleaved_sum(p[k], p[k + 2]);
      V::store(out + g, interleaved_sum(p[0], p[1]));
    }
    for (; g < groups; ++g, a += 8, b += 8) out[g] = V::sum(V::load(a) * V::load(b));
  }
}

template <typename T>
void head_dots(const T* a, const T* b, int64_t rows, int64_t heads, int64_t width, int64_t,
               T* out) {
  if (is_short_head<T>(width)) return short_head_dots(a, b, rows * heads, out);
  for (int64_t g = 0; g < rows * heads; ++g) out[g] = dot(a + g * width, b + g * width, width);
}

template <typename T>
void scale_heads(const T* weight, const T* x, int64_t rows, int64_t heads, int64_t width, int64_t,
                 T* out) {
  using V = ShortHead<T>;
  if (is_short_head<T>(width)) {
    for (int64_t g = 0; g < rows * heads; ++g)
      V::store(out + g * kShortHead, V::load(x + g * kShortHead) * weight[g]);
    return;
  }
  for (int64_t g = 0; g < rows * heads; ++g)
    scale(weight[g], x + g * width, width, out + g * width);
}

template <typename T>
void add_scaled_heads(const T* weight, const T* x, int64_t rows, int64_t heads, int64_t width,
                      int64_t, T* out) {
  using V = ShortHead<T>;
  if (is_short_head<T>(width)) {
    for (int64_t g = 0; g < rows * heads; ++g)
      V::store(out + g * kShortHead,
               V::load(out + g * kShortHead) + V::load(x + g * kShortHead) * weight[g]);
    return;
  }
  for (int64_t g = 0; g < rows * heads; ++g)
    add_scaled(weight[g], x + g * width, width, out + g * width);
}

// The same with rows as the last dimension: [heads, width, rows], and [heads, stride] for weights.
// Vectors hold samples, so they are full even if a head is narrow, and need no horizontal sums.

template <typename T>
void rows_last_dots(const T* a, const T* b, int64_t rows, int64_t heads, int64_t width,
                    int64_t stride, T* out) {
  for (int64_t h = 0; h < heads; ++h, a += width * rows, b += width * rows, out += stride)
    over_rows<T>(0, rows, [&](auto vector, int64_t r) {
      using V = decltype(vector);
      typename V::Type sum{};
      for (int64_t c = 0; c < width; ++c)
        sum += V::load(a + c * rows + r) * V::load(b + c * rows + r);
      V::store(out + r, sum);
    });
}

template <bool add, typename T>
void rows_last_scale(const T* weight, const T* x, int64_t rows, int64_t heads, int64_t width,
                     int64_t stride, T* out) {
  for (int64_t h = 0; h < heads; ++h, x += width * rows, out += width * rows, weight += stride)
    over_rows<T>(0, rows, [&](auto vector, int64_t r) {
      using V = decltype(vector);
      const auto w = V::load(weight + r);
      for (int64_t c = 0; c < width; ++c) {
        const auto scaled = w * V::load(x + c * rows + r);
        T* const to = out + c * rows + r;
        V::store(to, add ? V::load(to) + scaled : scaled);
      }
    });
}

template <typename T>
void dot_and_add(const T* u, const T* x, const T* weight, int64_t rows, int64_t heads,
                 int64_t channels, T* dots, T* out) {
  for (int64_t r = 0; r < rows; ++r) {
    dots[r * heads] = dot(u + r * channels, x + r * channels, channels);
    add_scaled(weight[r * heads], u + r * channels, channels, out + r * channels);
  }
}

template <typename T>
void add(const T* x, int64_t count, T* out) {
  add_scaled(T(1), x, count, out);
}

// x = exp(x - shift). For float: 2^n times a polynomial of degree 6 on [-ln2/2, ln2/2], accurate to
// 2 ulp; 0 if the argument is below -87. Arguments must not be above 0. `Shift` is a number or a
// row.
inline double shift_at(double shift, int64_t) { return shift; }
inline double shift_at(const double* shift, int64_t c) { return shift[c]; }
inline Vector<float>::Type load_shift(float shift, int64_t) { return Vector<float>::all(shift); }
inline Vector<float>::Type load_shift(const float* shift, int64_t c) {
  return Vector<float>::load(shift + c);
}
inline float shift_at(float shift, int64_t) { return shift; }
inline float shift_at(const float* shift, int64_t c) { return shift[c]; }

template <typename Shift>
void exp_row(double* x, Shift shift, int64_t n) {
  for (int64_t c = 0; c < n; ++c) x[c] = std::exp(x[c] - shift_at(shift, c));
}

inline Vector<float>::Type exp_vector(Vector<float>::Type t) {
  using V = Vector<float>;
  typedef int32_t Ints __attribute__((vector_size(TRANSLUTION_VECTOR_BYTES)));
  const auto low = V::all(-87.0f);
  const auto below = t < low;
  t = below ? low : t;
  const auto magic = V::all(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const auto n = (t * 1.44269504f + magic) - magic;
  auto r = t - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  auto p = V::all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Ints exponent = (__builtin_convertvector(n, Ints) + 127) << 23;
  const auto y = p * (V::Type)exponent;
  return below ? V::Type{} : y;
}

template <typename Shift>
void exp_row(float* x, Shift shift, int64_t n) {
  using V = Vector<float>;
  int64_t c = 0;
  for (; c + V::kLanes <= n; c += V::kLanes)
    V::store(x + c, exp_vector(V::load(x + c) - load_shift(shift, c)));
  if (c == n) return;
  float tail[V::kLanes] = {};
  for (int64_t l = c; l < n; ++l) tail[l - c] = x[l] - shift_at(shift, l);
  V::store(tail, exp_vector(V::load(tail)));
  for (int64_t l = c; l < n; ++l) x[l] = tail[l - c];
}

template <typename T>
void softmax_lanes(T* s, const char* open, int64_t keys, int64_t lanes, T* scratch) {
  constexpr T kMasked = -std::numeric_limits<T>::infinity();
  T* const max = scratch;
  T* const sum = scratch + lanes;
  for (int64_t l = 0; l < lanes; ++l) max[l] = kMasked, sum[l] = 0;
  for (int64_t j = 0; j < keys; ++j) {
    if (!open[j]) continue;
    const T* const row = s + j * lanes;
    for (int64_t l = 0; l < lanes; ++l) max[l] = row[l] > max[l] ? row[l] : max[l];
  }
  for (int64_t l = 0; l < lanes; ++l) max[l] = max[l] == kMasked ? 0 : max[l];
  for (int64_t j = 0; j < keys; ++j) {
    T* const row = s + j * lanes;
    if (!open[j]) {
      for (int64_t l = 0; l < lanes; ++l) row[l] = 0;
      continue;
    }
    exp_row(row, static_cast<const T*>(max), lanes);
    for (int64_t l = 0; l < lanes; ++l) sum[l] += row[l];
  }
  for (int64_t l = 0; l < lanes; ++l) sum[l] = sum[l] == 0 ? 0 : 1 / sum[l];
  for (int64_t j = 0; j < keys; ++j) {
    if (!open[j]) continue;
    T* const row = s + j * lanes;
    for (int64_t l = 0; l < lanes; ++l) row[l] *= sum[l];
  }
}

template <typename T>
void lane_dots(const T* p, const T* dp, int64_t keys, int64_t lanes, T* dots) {
  for (int64_t l = 0; l < lanes; ++l) dots[l] = 0;
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t l = 0; l < lanes; ++l) dots[l] += p[j * lanes + l] * dp[j * lanes + l];
}

template <typename T>
void softmax_lanes_backward(const T* p, T* dp, int64_t keys, int64_t lanes, T scale,
                            const T* dots) {
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t l = 0; l < lanes; ++l)
      dp[j * lanes + l] = p[j * lanes + l] * (dp[j * lanes + l] - dots[l]) * scale;
}

template <typename T>
void softmax_row(T* s, const T* bias, int64_t n, T scale) {
  T max = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < n; ++j) {
    s[j] = bias ? s[j] * scale + bias[j] : s[j] * scale;
    max = s[j] > max ? s[j] : max;
  }
  if (max == -std::numeric_limits<T>::infinity()) {
    for (int64_t j = 0; j < n; ++j) s[j] = 0;
    return;
  }
  exp_row(s, max, n);
  using V = Vector<T>;
  typename V::Type partial{};
  int64_t j = 0;
  for (; j + V::kLanes <= n; j += V::kLanes) partial += V::load(s + j);
  T sum = V::sum(partial);
  for (; j < n; ++j) sum += s[j];
  const T inverse = 1 / sum;
  for (j = 0; j < n; ++j) s[j] *= inverse;
}

template <typename T>
void softmax_row_backward(const T* p, T* dp, int64_t n, T scale) {
  const T mean = dot(p, dp, n);
  for (int64_t j = 0; j < n; ++j) dp[j] = p[j] * (dp[j] - mean) * scale;
}

inline Vector<double>::Type exp_vector(Vector<double>::Type t) {
  for (int64_t l = 0; l < Vector<double>::kLanes; ++l) t[l] = std::exp(t[l]);
  return t;
}

// Calls work(c, vector) for each vector of a row; the last one is padded with -infinity.
template <typename T, typename Work>
void over_vectors(const T* x, int64_t begin, int64_t end, const Work& work) {
  using V = Vector<T>;
  int64_t c = begin;
  for (; c + V::kLanes <= end; c += V::kLanes) work(c, V::load(x + c));
  if (c == end) return;
  T tail[V::kLanes];
  for (int64_t l = 0; l < V::kLanes; ++l)
    tail[l] = c + l < end ? x[c + l] : -std::numeric_limits<T>::infinity();
  work(c, V::load(tail));
}

// The sums of blocks are added in double, since a row may have a hundred thousand elements.
template <typename T>
T log_sum_exp(const T* x, int64_t n) {
  using V = Vector<T>;
  constexpr int64_t kBlock = 4096;
  auto maxima = V::all(-std::numeric_limits<T>::infinity());
  over_vectors(x, 0, n, [&](int64_t, auto v) { maxima = v > maxima ? v : maxima; });
  T max = maxima[0];
  for (int64_t l = 1; l < V::kLanes; ++l) max = maxima[l] > max ? maxima[l] : max;
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    typename V::Type partial{};
    over_vectors(x, begin, begin + kBlock < n ? begin + kBlock : n,
                 [&](int64_t, auto v) { partial += exp_vector(v - max); });
    sum += V::sum(partial);
  }
  return static_cast<T>(max + std::log(sum));
}

template <typename T>
void softmax_minus(const T* x, T log_sum, T less, T scale, int64_t n, T* out) {
  using V = Vector<T>;
  over_vectors(x, 0, n, [&](int64_t c, auto v) {
    const auto numbers = (exp_vector(v - log_sum) - less) * scale;
    if (c + V::kLanes <= n) return V::store(out + c, numbers);
    for (int64_t l = 0; c + l < n; ++l) out[c + l] = numbers[l];
  });
}

// A square with as many rows as a vector has lanes is transposed in registers: rows r and r + n/2
// are interleaved repeatedly until each vector holds a column. Edges use smaller squares.
template <typename V, size_t... lane>
typename V::Type interleave(typename V::Type a, typename V::Type b, bool high,
                            std::index_sequence<lane...>) {
  using Index = std::conditional_t<sizeof(a[0]) == 8, int64_t, int32_t>;
  typedef Index Indices __attribute__((vector_size(sizeof(a))));
  constexpr Index n = V::kLanes;
  return high ? __builtin_shuffle(a, b, Indices{Index(lane % 2 * n + (lane + n) / 2)...})
              : __builtin_shuffle(a, b, Indices{Index(lane % 2 * n + lane / 2)...});
}

template <typename V>
void transpose_square(typename V::Type* rows) {
  constexpr int64_t n = V::kLanes;
  constexpr auto lanes = std::make_index_sequence<n>();
  for (int64_t round = 1; round < n; round *= 2) {
    typename V::Type next[n];
    for (int64_t r = 0; r < n / 2; ++r) {
      next[2 * r] = interleave<V>(rows[r], rows[r + n / 2], false, lanes);
      next[2 * r + 1] = interleave<V>(rows[r], rows[r + n / 2], true, lanes);
    }
    for (int64_t r = 0; r < n; ++r) rows[r] = next[r];
  }
}

template <typename T, int64_t bytes = TRANSLUTION_VECTOR_BYTES>
void transpose(const T* x, int64_t rows, int64_t ldx, int64_t cols, T alpha, T beta, T* out,
               int64_t ldout) {
  using V = Vector<T, bytes>;
  constexpr int64_t n = V::kLanes;
  const int64_t full_rows = rows / n * n, full_cols = cols / n * n;
  for (int64_t c = 0; c < full_cols; c += n)
    for (int64_t r = 0; r < full_rows; r += n) {
      typename V::Type square[n];
      for (int64_t k = 0; k < n; ++k) square[k] = V::load(x + (r + k) * ldx + c) * alpha;
      transpose_square<V>(square);
      for (int64_t k = 0; k < n; ++k) {
        T* const to = out + (c + k) * ldout + r;
        V::store(to, beta == 0 ? square[k] : V::load(to) * beta + square[k]);
      }
    }
  if constexpr (n > 1) {
    if (full_rows < rows)
      transpose<T, bytes / 2>(x + full_rows * ldx, rows - full_rows, ldx, cols, alpha, beta,
                              out + full_rows, ldout);
    if (full_cols < cols)
      transpose<T, bytes / 2>(x + full_cols, full_rows, ldx, cols - full_cols, alpha, beta,
                              out + full_cols * ldout, ldout);
  }
}

// Taps are summed in registers, a vector of channels at a time.
template <typename T, int64_t bytes = TRANSLUTION_VECTOR_BYTES>
void combine(const T* const* rows, const T* weight, int64_t taps, int64_t n, T* out,
             int64_t c = 0) {
  using V = Vector<T, bytes>;
  for (; c + V::kLanes <= n; c += V::kLanes) {
    auto sum = V::load(rows[0] + c) * weight[0];
    for (int64_t t = 1; t < taps; ++t) sum += V::load(rows[t] + c) * weight[t];
    V::store(out + c, sum);
  }
  if constexpr (V::kLanes > 1)
    if (c < n) combine<T, bytes / 2>(rows, weight, taps, n, out, c);
}

template <typename T>
void combine_taps(const T* const* rows, const T* weight, int64_t taps, int64_t n, T* out) {
  combine<T>(rows, weight, taps, n, out);
}

template <typename T>
void spread_taps(const T* x, const T* weight, int64_t taps, int64_t n, T* const* rows) {
  for (int64_t t = 0; t < taps; ++t) add_scaled<T>(weight[t], x, n, rows[t]);
}

template <typename T>
void tap_dots(const T* const* rows, const T* x, int64_t taps, int64_t n, T* out) {
  for (int64_t t = 0; t < taps; ++t) out[t] = dot<T>(rows[t], x, n);
}

template <typename T>
void adamw(const AdamWStep<T>& step, const T* gradient, int64_t count, T* __restrict weight,
           T* __restrict first, T* __restrict second) {
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * step.gradient_scale;
    first[i] = step.beta1 * first[i] + step.rest1 * g;
    second[i] = step.beta2 * second[i] + step.rest2 * g * g;
    const T root = std::sqrt(second[i] * step.second_correction);
    weight[i] = weight[i] * step.decay - step.rate * first[i] / (root + step.epsilon);
  }
}

// Sums blocks that are short enough to lose no significant precision, and adds them in double.
template <typename T>
double sum_squares(const T* x, int64_t count) {
  constexpr int64_t kBlock = 4096;
  double total = 0;
  for (int64_t i = 0; i < count; i += kBlock)
    total += dot(x + i, x + i, i + kBlock < count ? kBlock : count - i);
  return total;
}

template <typename T>
constexpr RowOps<T> kOps{{head_dots<T>, scale_heads<T>, add_scaled_heads<T>},
                         {rows_last_dots<T>, rows_last_scale<false, T>, rows_last_scale<true, T>},
                         dot_and_add<T>,
                         combine_taps<T>,
                         spread_taps<T>,
                         tap_dots<T>,
                         add<T>,
                         softmax_lanes<T>,
                         lane_dots<T>,
                         softmax_lanes_backward<T>,
                         softmax_row<T>,
                         softmax_row_backward<T>,
                         log_sum_exp<T>,
                         softmax_minus<T>,
                         layer_norm<T>,
                         layer_norm_backward<T>,
                         transpose<T>,
                         adamw<T>,
                         sum_squares<T>};

}  // namespace
}  // namespace translution::kernels
