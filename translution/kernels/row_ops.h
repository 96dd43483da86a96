#pragma once

#include <cstdint>

#include "translution/core/cpu_info.h"

namespace translution::kernels {

/// One step of AdamW on `count` weights: the numbers that are the same for all of them.
template <typename T>
struct AdamWStep {
  T rate;   ///< learning rate over 1 - beta1^t
  T decay;  ///< 1 - learning rate * weight decay
  T beta1, beta2;
  T second_correction;  ///< 1 / (1 - beta2^t)
  T epsilon;
  T gradient_scale;  ///< what clipping leaves of the gradient
};

/// What is done with one number for each row and head. A row is `heads` groups of `width` channels.
/// `stride` leads from the numbers of one head to those of the next, where rows are last.
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

/// What is done to rows between the matrix products. Compiled once for every instruction set.
template <typename T>
struct RowOps {
  HeadOps<T> heads;      ///< rows [rows,heads,width], weights [rows,heads]
  HeadOps<T> rows_last;  ///< the same with rows [heads,width,rows], weights [heads,stride]
  /// One head's part of a value gradient: dot[r*heads] = u[r,:] . x[r,:] and
  /// out[r,:] += weight[r*heads] * u[r,:], in one pass over u.
  void (*dot_and_add)(const T* u, const T* x, const T* weight, int64_t rows, int64_t heads,
                      int64_t channels, T* dot, T* out);
  /// out[i] += x[i]
  void (*add)(const T* x, int64_t count, T* out);
  /// Softmax over the first index of s [keys, lanes], in place: keys is strided by `lanes`. A key
  /// whose `open` is 0 is left out and gets 0.
  void (*softmax_lanes)(T* s, const char* open, int64_t keys, int64_t lanes, T* scratch);
  /// ds[j,l] = p[j,l] * (dp[j,l] - sum_j p dp) * scale, in place on dp; scratch has `lanes`.
  void (*softmax_lanes_backward)(const T* p, T* dp, int64_t keys, int64_t lanes, T scale,
                                 T* scratch);
  /// Softmax of scale * s + bias, in place; `bias` may be null, and -infinity in it leaves out. A
  /// row of which nothing is left becomes zeros.
  void (*softmax_row)(T* s, const T* bias, int64_t n, T scale);
  /// ds = p * (dp - p . dp) * scale, in place on dp.
  void (*softmax_row_backward)(const T* p, T* dp, int64_t n, T scale);
  /// log(sum(exp(x)))
  T (*log_sum_exp)(const T* x, int64_t n);
  /// out[i] = (exp(x[i] - log_sum) - less) * scale, where no x is above log_sum.
  void (*softmax_minus)(const T* x, T log_sum, T less, T scale, int64_t n, T* out);
  /// Each row less its mean, over its deviation, times weight plus bias:
  ///   out[r,:] = (x[r,:] - mean_r) / sqrt(variance_r + eps) * weight + bias
  void (*layer_norm)(const T* x, const T* weight, const T* bias, double eps, int64_t rows,
                     int64_t n, T* out);
  /// Its gradients: dx, and those of weight and bias, which are added to what is there.
  void (*layer_norm_backward)(const T* d, const T* x, const T* weight, double eps, int64_t rows,
                              int64_t n, T* dx, T* dweight, T* dbias);
  /// out [cols, rows] = beta * out + alpha * the transpose of x [rows, cols].
  void (*transpose)(const T* x, int64_t rows, int64_t ldx, int64_t cols, T alpha, T beta, T* out,
                    int64_t ldout);
  /// Weights and both moments in one pass over memory.
  void (*adamw)(const AdamWStep<T>& step, const T* gradient, int64_t count, T* weight, T* first,
                T* second);
  /// Sum of squares, in double.
  double (*sum_squares)(const T* x, int64_t count);
};

/// The table for an instruction set; `row_ops<T>()` is that of `chosen_isa()`.
template <typename T>
const RowOps<T>& row_ops(Isa isa);
template <typename T>
const RowOps<T>& row_ops() {
  static const RowOps<T>& ops = row_ops<T>(chosen_isa());
  return ops;
}

}  // namespace translution::kernels
