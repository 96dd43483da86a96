#pragma once

// Layer norm of rows and its gradients: a part of row_ops-inl.h, in an anonymous namespace for the
// same reason.

#include <cmath>
#include <cstdint>
#include <limits>

#include "translution/kernels/vector-inl.h"

namespace translution::kernels {
namespace {

// Several sums over a row in one pass: term(V{}, c) returns the summands of column c. The
// sums of blocks are added in double.
template <typename Type, int count>
struct Terms {
  Type values[count];

  void add(const Terms& more) {
    for (int k = 0; k < count; ++k) values[k] += more.values[k];
  }
};

template <typename T, int count, typename Term>
Terms<double, count> sum_terms(int64_t n, const Term& term) {
  using V = Vector<T>;
  using One = Vector<T, sizeof(T)>;
  constexpr int64_t kBlock = 4096, kLanes = V::kLanes;
  Terms<double, count> total{};
  for (int64_t c = 0; c < n;) {
    const int64_t end = c + kBlock < n ? c + kBlock : n;
    Terms<typename V::Type, count> first{}, second{};
    for (; c + 2 * kLanes <= end; c += 2 * kLanes)
      first.add(term(V{}, c)), second.add(term(V{}, c + kLanes));
    if (c + kLanes <= end) first.add(term(V{}, c)), c += kLanes;
    Terms<typename One::Type, count> rest{};
    for (; c < end; ++c) rest.add(term(One{}, c));
    first.add(second);
    for (int k = 0; k < count; ++k) total.values[k] += V::sum(first.values[k]) + rest.values[k][0];
  }
  return total;
}

template <typename T>
T row_mean(const T* x, int64_t n) {
  const auto sum = sum_terms<T, 1>(n, [x](auto v, int64_t c) {
    using V = decltype(v);
    return Terms<typename V::Type, 1>{{V::load(x + c)}};
  });
  return static_cast<T>(sum.values[0] / static_cast<double>(n));
}

// 1 / sqrt(variance + eps), from the sum of squared deviations. NaN if the squares overflow:
// infinity would set the complete row to 0 and hide that a training diverges.
inline double inverse_deviation(double squares, int64_t n, double eps) {
  if (!__builtin_isfinite(squares)) return std::numeric_limits<double>::quiet_NaN();
  return 1 / std::sqrt(squares / static_cast<double>(n) + eps);
}

template <typename T>
void layer_norm(const T* x, const T* weight, const T* bias, double eps, int64_t rows, int64_t n,
                T* out) {
  for (int64_t r = 0; r < rows; ++r, x += n, out += n) {
    const T mean = row_mean(x, n);
    const auto sum = sum_terms<T, 1>(n, [x, mean](auto v, int64_t c) {
      using V = decltype(v);
      const auto centred = V::load(x + c) - mean;
      return Terms<typename V::Type, 1>{{centred * centred}};
    });
    const T inverse = static_cast<T>(inverse_deviation(sum.values[0], n, eps));
    over_rows<T>(0, n, [&](auto v, int64_t c) {
      using V = decltype(v);
      V::store(out + c,
               (V::load(x + c) - mean) * inverse * V::load(weight + c) + V::load(bias + c));
    });
  }
}

// With the normalised row y and g = d * weight: dx = (g - mean(g) - y * mean(g * y)) / deviation.
// Processes a few rows at a time: their sums are independent of each other, and the gradients of
// weight and bias are read and written once for all of them. 3200 rows of 192: 295 -> 250 us.
template <int count, typename T>
void norm_rows_backward(const T* d, const T* x, const T* weight, double eps, int64_t n, T* dx,
                        T* dweight, T* dbias) {
  T mean[count], inverse[count], mean_g[count], mean_gy[count];
  for (int r = 0; r < count; ++r) mean[r] = row_mean(x + r * n, n);
  for (int r = 0; r < count; ++r) {
    const T *const xr = x + r * n, *const dr = d + r * n, m = mean[r];
    const auto sums = sum_terms<T, 3>(n, [=](auto v, int64_t c) {
      using V = decltype(v);
      const auto centred = V::load(xr + c) - m, g = V::load(dr + c) * V::load(weight + c);
      return Terms<typename V::Type, 3>{{centred * centred, g, g * centred}};
    });
    const auto columns = static_cast<double>(n);
    const double inverse_double = inverse_deviation(sums.values[0], n, eps);
    inverse[r] = static_cast<T>(inverse_double);
    mean_g[r] = static_cast<T>(sums.values[1] / columns);
    mean_gy[r] = static_cast<T>(sums.values[2] / columns * inverse_double);
  }
  over_rows<T>(0, n, [&](auto v, int64_t c) {
    using V = decltype(v);
    const auto w = V::load(weight + c);
    auto dw = V::load(dweight + c), db = V::load(dbias + c);
    for (int r = 0; r < count; ++r) {
      const auto y = (V::load(x + r * n + c) - mean[r]) * inverse[r];
      const auto dy = V::load(d + r * n + c);
      dw += dy * y;
      db += dy;
      V::store(dx + r * n + c, (dy * w - mean_g[r] - y * mean_gy[r]) * inverse[r]);
    }
    V::store(dweight + c, dw);
    V::store(dbias + c, db);
  });
}

template <typename T>
void layer_norm_backward(const T* d, const T* x, const T* weight, double eps, int64_t rows,
                         int64_t n, T* dx, T* dweight, T* dbias) {
  constexpr int kRowsAtOnce = 4;
  int64_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce)
    norm_rows_backward<kRowsAtOnce>(d + r * n, x + r * n, weight, eps, n, dx + r * n, dweight,
                                    dbias);
  for (; r < rows; ++r)
    norm_rows_backward<1>(d + r * n, x + r * n, weight, eps, n, dx + r * n, dweight, dbias);
}

}  // namespace
}  // namespace translution::kernels
