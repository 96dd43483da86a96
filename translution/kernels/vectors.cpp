#include "translution/kernels/vectors.h"

#include <algorithm>

#include "translution/kernels/gemm.h"

namespace translution::kernels {

template <typename T>
VectorPasses<T>::VectorPasses(const Shape& shape, const int32_t* slots)
    : shape_(shape),
      slots_(slots),
      ops_(row_ops<T>()),
      vectors_(new T[shape.tokens * table_width()]),
      transposed_(new T[shape.tokens * shape.width]) {}

// Gathers r_ij of one query: [N,heads*width].
template <typename T>
const T* VectorPasses<T>::gather(int64_t i, const T* table) {
  const int64_t width = table_width();
  for (int64_t j = 0; j < shape_.tokens; ++j) {
    const int64_t slot = slots_[i * shape_.tokens + j];
    T* const to = vectors_.get() + j * width;
    if (slot < 0)
      std::fill_n(to, width, T(0));
    else
      std::copy_n(table + slot * width, width, to);
  }
  return vectors_.get();
}

template <typename T>
void VectorPasses<T>::dots(int64_t i, const T* table, Features<const T> x, T* maps) {
  const int64_t B = shape_.batch, N = shape_.tokens, D = shape_.width;
  const T* const r = gather(i, table);
  for (int64_t h = 0; h < shape_.heads; ++h) {
    ops_.transpose(r + h * D, N, table_width(), D, 1, 0, transposed_.get(), N);
    gemm<T>(false, false, B, N, D, x.data + i * x.row_stride + h * D, x.batch_stride,
            transposed_.get(), N, 1, map_rows(maps, h, i), sample_stride());
  }
}

template <typename T>
void VectorPasses<T>::sums(int64_t i, const T* table, const T* maps, Features<T> out) {
  const int64_t B = shape_.batch, N = shape_.tokens, D = shape_.width;
  const T* const r = gather(i, table);
  for (int64_t h = 0; h < shape_.heads; ++h)
    gemm<T>(false, false, B, D, N, map_rows(maps, h, i), sample_stride(), r + h * D, table_width(),
            0, out.data + i * out.row_stride + h * D, out.batch_stride);
}

template <typename T>
void VectorPasses<T>::add_table_gradient(int64_t h, int64_t begin, int64_t end, const T* maps,
                                         Features<const T> x, T* dtable) {
  const int64_t B = shape_.batch, N = shape_.tokens, width = end - begin;
  const int64_t channel = h * shape_.width + begin;
  for (int64_t i = 0; i < shape_.queries; ++i) {
    gemm<T>(true, false, N, width, B, map_rows(maps, h, i), sample_stride(),
            x.data + i * x.row_stride + channel, x.batch_stride, 0, transposed_.get(), width);
    const int32_t* const slots_i = slots_ + i * N;
    for (int64_t j = 0; j < N; ++j)
      if (slots_i[j] >= 0)
        ops_.add(transposed_.get() + j * width, width,
                 dtable + slots_i[j] * table_width() + channel);
  }
}

template class VectorPasses<float>;
template class VectorPasses<double>;

}  // namespace translution::kernels
