#include "tests/support/oracle.h"

#include <ATen/ATen.h>

#include <cmath>
#include <complex>
#include <numeric>

namespace translution::oracle {
namespace {

using Vector = std::vector<double>;

/// Element access to a tensor.
class Array {
 public:
  explicit Array(const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const auto dense = tensor.detach().to(at::kDouble).contiguous();
    shape_ = dense.sizes().vec();
    values_.assign(dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel());
  }

  bool given() const { return !shape_.empty(); }
  int64_t dims() const { return static_cast<int64_t>(shape_.size()); }
  int64_t size(int64_t dim) const { return shape_.at(dim); }
  int64_t width() const { return shape_.back(); }

  template <typename... Index>
  double operator()(Index... index) const {
    int64_t flat = 0;
    size_t dim = 0;
    ((flat = flat * shape_.at(dim++) + index), ...);
    return values_.at(flat);
  }

 private:
  std::vector<int64_t> shape_;
  Vector values_;
};

Vector row(const Array& x, int64_t b, int64_t i) {
  Vector f(x.width());
  for (int64_t c = 0; c < x.width(); ++c) f[c] = x(b, i, c);
  return f;
}

// f W for a shared weight [C,E], f W[slot] for a table [M,C,E].
Vector encode(const Vector& f, const Array& w, int64_t slot) {
  Vector encoded(w.width(), 0.0);
  for (size_t c = 0; c < f.size(); ++c)
    for (int64_t e = 0; e < w.width(); ++e)
      encoded[e] += f[c] * (w.dims() == 3 ? w(slot, c, e) : w(c, e));
  return encoded;
}

Vector plus(Vector a, const Vector& b) {
  for (size_t c = 0; c < b.size(); ++c) a[c] += b[c];
  return a;
}

Vector vector_of(const Array& table, int64_t slot) {  // row of [M,E]
  Vector v(table.width());
  for (int64_t e = 0; e < table.width(); ++e) v[e] = table(slot, e);
  return v;
}

Vector vector_of(const Array& v) {  // [E]
  Vector all(v.width());
  for (int64_t e = 0; e < v.width(); ++e) all[e] = v(e);
  return all;
}

// One dot product per head.
Vector head_dots(const Vector& q, const Vector& k, int64_t heads) {
  const size_t dim = q.size() / heads;
  Vector dots(heads, 0.0);
  for (size_t c = 0; c < q.size(); ++c) dots[c / dim] += q[c] * k[c];
  return dots;
}

// Every channel times the weight of its head.
Vector by_head(const Vector& weights, Vector v) {
  const size_t dim = v.size() / weights.size();
  for (size_t c = 0; c < v.size(); ++c) v[c] *= weights[c / dim];
  return v;
}

std::vector<int64_t> grid_position(int64_t token, const std::vector<int64_t>& grid) {
  std::vector<int64_t> position(grid.size());
  for (size_t axis = grid.size(); axis-- > 0; token /= grid[axis])
    position[axis] = token % grid[axis];
  return position;
}

// theta_f = 10000^(-f / F) times the coordinate, F frequencies for each axis in turn.
Vector rotate(Vector v, int64_t token, int64_t heads, const std::vector<int64_t>& grid, bool cls) {
  if (grid.empty() || (cls && token == 0)) return v;
  const auto position = grid_position(token - (cls ? 1 : 0), grid);
  const int64_t dim = static_cast<int64_t>(v.size()) / heads, half = dim / 2;
  const int64_t frequencies = half / static_cast<int64_t>(grid.size());
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t d = 0; d < half; ++d) {
      const double theta = std::pow(10000.0, -double(d % frequencies) / double(frequencies));
      double& real = v[h * dim + d];
      double& imaginary = v[h * dim + half + d];
      const auto rotated = std::complex<double>(real, imaginary) *
                           std::polar(1.0, theta * double(position[d / frequencies]));
      real = rotated.real(), imaginary = rotated.imag();
    }
  }
  return v;
}

/// The loops of one call, shared by all methods.
class Loops {
 public:
  Loops(const Call& call, int64_t batch) : call_(call), batch_(batch), rows_(call.rows) {
    if (rows_.empty()) {
      rows_.resize(call.pairing.tokens);
      std::iota(rows_.begin(), rows_.end(), 0);
    }
  }

  int64_t slot(int64_t i, int64_t j) const {
    return call_.pairing.slot[i * call_.pairing.tokens + j];
  }
  int64_t key_slot(int64_t i, int64_t j) const {
    return call_.pairing.key_slot[i * call_.pairing.tokens + j];
  }
  bool attends(int64_t b, int64_t i, int64_t j) const {
    const bool padding = call_.mask.defined() && !call_.mask[b][j].item<bool>();
    return slot(i, j) >= 0 && !(call_.causal && j > i) && !padding;
  }
  Vector rotated(const Vector& v, int64_t token) const {
    return rotate(v, token, call_.heads, call_.rotary_grid, call_.rotary_cls);
  }

  /// a_ij = e^score_ij / sum_n e^score_in for score(b, r, i, j), which returns a number per head.
  /// In the result [b][r][j] the entry of a pair that is left out is empty.
  template <typename Score>
  std::vector<Vector> softmax(Score score) const {
    const int64_t N = call_.pairing.tokens, Nq = queries();
    std::vector<Vector> map(batch_ * Nq * N);
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t r = 0; r < Nq; ++r) {
        Vector sum(call_.heads, 0.0);
        for (int64_t j = 0; j < N; ++j) {
          if (!attends(b, rows_[r], j)) continue;
          Vector& a = map[(b * Nq + r) * N + j] = score(b, r, rows_[r], j);
          for (int64_t h = 0; h < call_.heads; ++h) sum[h] += a[h] = std::exp(a[h]);
        }
        for (int64_t j = 0; j < N; ++j)
          for (size_t h = 0; h < map[(b * Nq + r) * N + j].size(); ++h)
            map[(b * Nq + r) * N + j][h] /= sum[h];
      }
    }
    return map;
  }

  /// sum_j contribution(b, i, j, w) -> [B,Nq,width], where w are the weights per head after
  /// dropout.
  template <typename Contribution>
  at::Tensor sum(const std::vector<Vector>& map, int64_t width, Contribution contribution) const {
    const Array keep(call_.keep);
    const int64_t N = call_.pairing.tokens, Nq = queries();
    auto out = at::zeros({batch_, Nq, width}, at::kDouble);
    auto write = out.accessor<double, 3>();
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t r = 0; r < Nq; ++r) {
        for (int64_t j = 0; j < N; ++j) {
          Vector w = map[(b * Nq + r) * N + j];
          if (w.empty()) continue;
          for (int64_t h = 0; keep.given() && h < call_.heads; ++h) w[h] *= keep(b, h, r, j);
          const Vector part = contribution(b, rows_[r], j, w);
          for (int64_t c = 0; c < width; ++c) write[b][r][c] += part[c];
        }
      }
    }
    return out;
  }

  /// (1 - g) a + g softmax_j(position), g = sigmoid(gate); `map` itself without a gate.
  std::vector<Vector> gated(std::vector<Vector> map, const at::Tensor& position,
                            const at::Tensor& gate) const {
    if (!gate.defined()) return map;
    const Array b(position), lambda(gate);
    const auto positional =
        softmax([&](int64_t, int64_t, int64_t i, int64_t j) { return vector_of(b, slot(i, j)); });
    for (size_t p = 0; p < map.size(); ++p) {
      for (size_t h = 0; h < map[p].size(); ++h) {
        const double g = 1 / (1 + std::exp(-lambda(h)));
        map[p][h] = (1 - g) * map[p][h] + g * positional[p][h];
      }
    }
    return map;
  }

  int64_t queries() const { return static_cast<int64_t>(rows_.size()); }

 private:
  const Call& call_;
  int64_t batch_;
  std::vector<int64_t> rows_;
};

double inverse_root(int64_t width, int64_t heads) {
  return 1 / std::sqrt(static_cast<double>(width) / static_cast<double>(heads));
}

Vector scaled(Vector v, double factor) {
  for (double& value : v) value *= factor;
  return v;
}

}  // namespace

at::Tensor translution(const at::Tensor& x, const RoleWeights& weights, const Call& call) {
  const Array f(x), wq(weights.q), wk(weights.k), wv(weights.v);
  const Loops loops(call, f.size(0));
  const double scale = inverse_root(wv.width(), call.heads);
  const auto map = loops.softmax([&](int64_t b, int64_t, int64_t i, int64_t j) {
    const Vector q_ij = loops.rotated(encode(row(f, b, i), wq, loops.slot(i, j)), i);
    const Vector k_ji = loops.rotated(encode(row(f, b, j), wk, loops.key_slot(i, j)), j);
    return scaled(head_dots(q_ij, k_ji, call.heads), scale);
  });
  return loops.sum(map, wv.width(), [&](int64_t b, int64_t i, int64_t j, const Vector& a) {
    return by_head(a, encode(row(f, b, j), wv, loops.slot(i, j)));
  });
}

at::Tensor alpha_translution(const at::Tensor& x, const AlphaWeights& weights, const Call& call,
                             Mixing mixing) {
  const Array f(x), wq(weights.shared.q), wk(weights.shared.k), wv(weights.shared.v);
  const Array wq1(weights.down.q), wk1(weights.down.k), wv1(weights.down.v), wv2(weights.up);
  const Array tq(weights.table.q), tk(weights.table.k), tv(weights.table.v);
  const bool shared = wv.given();
  const bool small_scores = !shared || tq.given() || tk.given();
  const bool small_values = !shared || tv.given();
  const int64_t width = shared ? wv.width() : wv2.width();
  const double half = shared && mixing == Mixing::mean ? 0.5 : 1.0;
  const double scale = inverse_root(width, call.heads);
  const auto small = [&](const Vector& in, const Array& down, const Array& table, int64_t slot) {
    const Vector low = encode(in, down, 0);
    return table.given() ? encode(low, table, slot) : low;
  };
  const Loops loops(call, f.size(0));
  const auto map = loops.softmax([&](int64_t b, int64_t, int64_t i, int64_t j) {
    const Vector f_i = row(f, b, i), f_j = row(f, b, j);
    Vector a(call.heads, 0.0);
    if (shared)
      a = head_dots(loops.rotated(encode(f_i, wq, 0), i), loops.rotated(encode(f_j, wk, 0), j),
                    call.heads);
    if (small_scores)
      a = scaled(plus(a, head_dots(small(f_i, wq1, tq, loops.slot(i, j)),
                                   small(f_j, wk1, tk, loops.key_slot(i, j)), call.heads)),
                 half);
    return scaled(a, scale);
  });
  return loops.sum(map, width, [&](int64_t b, int64_t i, int64_t j, const Vector& a) {
    const Vector f_j = row(f, b, j);
    Vector part(width, 0.0);
    if (shared) part = by_head(a, encode(f_j, wv, 0));
    if (small_values)
      part = scaled(plus(part, encode(by_head(a, small(f_j, wv1, tv, loops.slot(i, j))), wv2, 0)),
                    half);
    return part;
  });
}

at::Tensor self_attention(const at::Tensor& x, const RoleWeights& weights,
                          const PositionTerms& terms, const Call& call) {
  const Array f(x), wq(weights.q), wk(weights.k), wv(weights.v);
  const Array key_vectors(terms.key_vectors), value_vectors(terms.value_vectors), bias(terms.bias);
  const Array bq(terms.biases.q), bk(terms.biases.k), bv(terms.biases.v);
  const auto biased = [](const Vector& v, const Array& added) {
    return added.given() ? plus(v, vector_of(added)) : v;
  };
  const Loops loops(call, f.size(0));
  const double scale = inverse_root(wv.width(), call.heads);
  const auto map = loops.softmax([&](int64_t b, int64_t, int64_t i, int64_t j) {
    const Vector q = biased(encode(row(f, b, i), wq, 0), bq);
    const Vector k = biased(encode(row(f, b, j), wk, 0), bk);
    Vector a = head_dots(loops.rotated(q, i), loops.rotated(k, j), call.heads);
    if (key_vectors.given())  // the vectors depend on the offset already, so q is not rotated
      a = plus(a, head_dots(q, vector_of(key_vectors, loops.slot(i, j)), call.heads));
    a = scaled(a, scale);
    return bias.given() ? plus(a, vector_of(bias, loops.slot(i, j))) : a;
  });
  return loops.sum(loops.gated(map, terms.position, terms.gate), wv.width(),
                   [&](int64_t b, int64_t i, int64_t j, const Vector& w) {
                     Vector v = biased(encode(row(f, b, j), wv, 0), bv);
                     if (value_vectors.given())
                       v = plus(v, vector_of(value_vectors, loops.slot(i, j)));
                     return by_head(w, v);
                   });
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const Call& call) {
  const Array f(x), w(weight);
  const Loops loops(call, f.size(0));
  // Softmax of equal scores gives 1/n for each of n pairs. With all entries set to one instead, the
  // sum is the convolution.
  auto map =
      loops.softmax([&](int64_t, int64_t, int64_t, int64_t) { return Vector(call.heads, 0.0); });
  for (Vector& entry : map) entry.assign(entry.size(), 1.0);
  return loops.sum(map, w.width(), [&](int64_t b, int64_t i, int64_t j, const Vector& a) {
    return by_head(a, encode(row(f, b, j), w, loops.slot(i, j)));
  });
}

at::Tensor rotary(const at::Tensor& x, const std::vector<int64_t>& grid, bool cls, int64_t heads) {
  const Array f(x);
  auto out = at::zeros(x.sizes(), at::kDouble);
  auto write = out.accessor<double, 3>();
  for (int64_t b = 0; b < f.size(0); ++b) {
    for (int64_t i = 0; i < f.size(1); ++i) {
      const Vector rotated = rotate(row(f, b, i), i, heads, grid, cls);
      for (int64_t c = 0; c < f.width(); ++c) write[b][i][c] = rotated[c];
    }
  }
  return out;
}

std::pair<at::Tensor, at::Tensor> attention(const AttentionTerms& terms, double scale,
                                            const Call& call) {
  const Array q(terms.q), k(terms.k), v(terms.v), bias(terms.bias);
  const Array rel_q(terms.rel_q), rel_k(terms.rel_k), rel_v(terms.rel_v);
  const Array table_q(terms.table_q), table_k(terms.table_k), table_v(terms.table_v);
  const auto side = [](const Array& x, const Array& table, int64_t b, int64_t i, int64_t slot) {
    if (!x.given()) return vector_of(table, slot);
    return table.given() ? encode(row(x, b, i), table, slot) : row(x, b, i);
  };
  int64_t batch = 0;
  for (const Array* x : {&q, &v, &rel_q, &rel_k, &rel_v})
    if (x->given()) batch = x->size(0);
  const Loops loops(call, batch);
  const auto map = loops.gated(loops.softmax([&](int64_t b, int64_t r, int64_t i, int64_t j) {
    Vector a(call.heads, 0.0);
    if (q.given()) a = head_dots(row(q, b, r), row(k, b, j), call.heads);
    if (rel_q.given() || table_q.given())
      a = plus(a, head_dots(side(rel_q, table_q, b, r, loops.slot(i, j)),
                            side(rel_k, table_k, b, j,
                                 rel_k.given() ? loops.key_slot(i, j) : loops.slot(i, j)),
                            call.heads));
    a = scaled(a, scale);
    return bias.given() ? plus(a, vector_of(bias, loops.slot(i, j))) : a;
  }),
                               terms.position, terms.gate);
  std::pair<at::Tensor, at::Tensor> result;
  if (v.given())
    result.first = loops.sum(map, v.width(), [&](int64_t b, int64_t, int64_t j, const Vector& w) {
      return by_head(w, row(v, b, j));
    });
  if (rel_v.given() || table_v.given())
    result.second = loops.sum(map, (table_v.given() ? table_v : rel_v).width(),
                              [&](int64_t b, int64_t i, int64_t j, const Vector& w) {
                                return by_head(w, side(rel_v, table_v, b, j, loops.slot(i, j)));
                              });
  return result;
}

}  // namespace translution::oracle
