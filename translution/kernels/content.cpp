#include "translution/kernels/content.h"

#include <algorithm>

#include "translution/kernels/gemm.h"

namespace translution::kernels {

template <typename T>
ContentPasses<T>::ContentPasses(const Shape& shape)
    : shape_(shape),
      ops_(row_ops<T>()),
      turned_(new T[shape.tokens * std::max(shape.width, shape.value_width)]) {}

template <typename T>
const T* ContentPasses<T>::head(const T* x, int64_t item, int64_t rows, int64_t width) const {
  return x + (item / shape_.heads * rows * shape_.heads + item % shape_.heads) * width;
}

template <typename T>
T* ContentPasses<T>::head(T* x, int64_t item, int64_t rows, int64_t width) const {
  return x + (item / shape_.heads * rows * shape_.heads + item % shape_.heads) * width;
}

// [rows, width] -> [width, rows]. The libraries multiply small matrices half again as fast when the
// right one is not transposed (50 x 64 x 50: 74 against 111 GFLOP/s), which pays for this.
template <typename T>
const T* ContentPasses<T>::transposed(const T* x, int64_t rows, int64_t row_stride, int64_t width) {
  ops_.transpose(x, rows, row_stride, width, 1, 0, turned_.get(), rows);
  return turned_.get();
}

template <typename T>
void ContentPasses<T>::scores(int64_t begin, int64_t end, const T* q, const T* k, T* maps) {
  const auto [H, Nq, N, D, F] = shape_;
  for (int64_t item = begin; item < end; ++item)
    gemm<T>(false, false, Nq, N, D, head(q, item, Nq, D), H * D,
            transposed(head(k, item, N, D), N, H * D, D), N, 0, maps + item * map_size(), N);
}

template <typename T>
void ContentPasses<T>::values(int64_t begin, int64_t end, const T* maps, const T* v, T* out) {
  const auto [H, Nq, N, D, F] = shape_;
  for (int64_t item = begin; item < end; ++item)
    gemm<T>(false, false, Nq, F, N, maps + item * map_size(), N, head(v, item, N, F), H * F, 0,
            head(out, item, Nq, F), H * F);
}

template <typename T>
void ContentPasses<T>::values_backward(int64_t begin, int64_t end, const T* maps, const T* v,
                                       const T* d_out, T* d_maps, T* dv) {
  const auto [H, Nq, N, D, F] = shape_;
  for (int64_t item = begin; item < end; ++item) {
    const T* d = head(d_out, item, Nq, F);
    if (d_maps)
      gemm<T>(false, false, Nq, N, F, d, H * F, transposed(head(v, item, N, F), N, H * F, F), N, 0,
              d_maps + item * map_size(), N);
    if (dv)
      gemm<T>(true, false, N, F, Nq, maps + item * map_size(), N, d, H * F, 0, head(dv, item, N, F),
              H * F);
  }
}

template <typename T>
void ContentPasses<T>::scores_backward(int64_t begin, int64_t end, const T* q, const T* k,
                                       const T* d_scores, T* dq, T* dk) {
  const auto [H, Nq, N, D, F] = shape_;
  for (int64_t item = begin; item < end; ++item) {
    const T* ds = d_scores + item * map_size();
    if (dq)
      gemm<T>(false, false, Nq, D, N, ds, N, head(k, item, N, D), H * D, 0, head(dq, item, Nq, D),
              H * D);
    if (dk)
      gemm<T>(true, false, N, D, Nq, ds, N, head(q, item, Nq, D), H * D, 0, head(dk, item, N, D),
              H * D);
  }
}

template class ContentPasses<float>;
template class ContentPasses<double>;

}  // namespace translution::kernels
