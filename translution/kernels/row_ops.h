#pragma once

#include <cstdint>

#include "translution/core/cpu_info.h"

namespace translution::kernels {

/// The scalars of one AdamW step.
template <typename T>
struct AdamWStep {
  T rate;   ///< learning rate / (1 - beta1^t)
  T decay;  ///< 1 - learning rate * weight decay
  T beta1, beta2;
  T rest1, rest2;       ///< 1 - beta, rounded once: 1 - 0.999f is off by 1e-5
  T second_correction;  ///< 1 / (1 - beta2^t)
  T epsilon;
  T gradient_scale;  ///< factor from gradient clipping
};

/// Operations with one weight per row and head. A row is `heads` groups of `width` channels. If
/// rows are the last dimension, `stride` is the distance between the weights of two heads.
template <typename T>
struct HeadOps {
  /// out[r,h] = a[r,h,:] . b[r,h,:]
  void (*dots)(const T* a, const T* b, int64_t rows, int64_t heads, int64_t width, int64_t stride,
               T* out);
  /// out[r,h,:] = weight[r,h] * x[r,h,:]
  void (*scale)(const T* weight, const T* x, int64_t rows, int64_t heads, int64_t width,
                int64_t stride, T* out);
  /// out[r,h,:] += weight[r,h] * x[r,h,:]
  void (*add_scaled)(const T* weight, const T* x, int64_t rows, int64_t heads, int64_t width,
                     int64_t stride, T* out);
};

/// Row operations between the matrix products. Compiled once for each instruction set.
template <typename T>
struct RowOps {
  HeadOps<T> heads;      ///< rows [rows,heads,width], weights [rows,heads]
  HeadOps<T> rows_last;  ///< the same with rows [heads,width,rows], weights [heads,stride]
  /// One head's share of a value gradient: dot[r*heads] = u[r,:] . x[r,:] and
  /// out[r,:] += weight[r*heads] * u[r,:], in one pass over u.
  void (*dot_and_add)(const T* u, const T* x, const T* weight, int64_t rows, int64_t heads,
                      int64_t channels, T* dot, T* out);
  /// A row of taps: out = sum_t weight[t] * rows[t]
  void (*combine)(const T* const* rows, const T* weight, int64_t taps, int64_t n, T* out);
  /// Its gradients: rows[t] += weight[t] * x, and out[t] = rows[t] . x
  void (*spread)(const T* x, const T* weight, int64_t taps, int64_t n, T* const* rows);
  void (*tap_dots)(const T* const* rows, const T* x, int64_t taps, int64_t n, T* out);
  /// out[i] += x[i]
  void (*add)(const T* x, int64_t count, T* out);
  /// Softmax over the first dimension of s [keys, lanes], in place. A key whose `open` is 0 is
  /// masked and becomes 0; -infinity masks an element. A fully masked lane becomes zeros. `scratch`
  /// has 2 * lanes elements.
  void (*softmax_lanes)(T* s, const char* open, int64_t keys, int64_t lanes, T* scratch);
  /// Its gradient: dots[l] = sum_j p[j,l] * dp[j,l], and with them
  /// ds[j,l] = p[j,l] * (dp[j,l] - dots[l]) * scale, in place on dp.
  void (*lane_dots)(const T* p, const T* dp, int64_t keys, int64_t lanes, T* dots);
  void (*softmax_lanes_backward)(const T* p, T* dp, int64_t keys, int64_t lanes, T scale,
                                 const T* dots);
  /// Softmax of scale * s + bias, in place. `bias` may be null; -infinity masks an element. A fully
  /// masked row becomes zeros.
  void (*softmax_row)(T* s, const T* bias, int64_t n, T scale);
  /// ds = p * (dp - p . dp) * scale, in place on dp.
  void (*softmax_row_backward)(const T* p, T* dp, int64_t n, T scale);
  /// log(sum(exp(x)))
  T (*log_sum_exp)(const T* x, int64_t n);
  /// out[i] = (exp(x[i] - log_sum) - less) * scale, for x[i] <= log_sum.
  void (*softmax_minus)(const T* x, T log_sum, T less, T scale, int64_t n, T* out);
  /// Layer norm:
  ///   out[r,:] = (x[r,:] - mean_r) / sqrt(variance_r + eps) * weight + bias
  void (*layer_norm)(const T* x, const T* weight, const T* bias, double eps, int64_t rows,
                     int64_t n, T* out);
  /// Gradients of layer_norm. Overwrites dx; adds to dweight and dbias.
  void (*layer_norm_backward)(const T* d, const T* x, const T* weight, double eps, int64_t rows,
                              int64_t n, T* dx, T* dweight, T* dbias);
  /// out [cols, rows] = beta * out + alpha * x^T, for x [rows, cols].
  void (*transpose)(const T* x, int64_t rows, int64_t ldx, int64_t cols, T alpha, T beta, T* out,
                    int64_t ldout);
  /// One AdamW step: updates weights and both moments in one pass over memory.
  void (*adamw)(const AdamWStep<T>& step, const T* gradient, int64_t count, T* weight, T* first,
                T* second);
  /// Sum of squares, accumulated in double.
  double (*sum_squares)(const T* x, int64_t count);
};

/// The operations for an instruction set; without an argument, for `chosen_isa()`.
template <typename T>
const RowOps<T>& row_ops(Isa isa);
template <typename T>
const RowOps<T>& row_ops() {
  static const RowOps<T>& ops = row_ops<T>(chosen_isa());
  return ops;
}

}  // namespace translution::kernels
