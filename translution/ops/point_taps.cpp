#include "translution/ops/point_taps.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <cmath>
#include <vector>

#include "translution/ops/check.h"
#include "translution/ops/parallel.h"
#include "translution/ops/register.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;
using TapsForward = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                               const at::Tensor&, int64_t, const OptionalTensor&);
using TapsBackward = Tensors(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                             const at::Tensor&, const at::Tensor&, int64_t, const OptionalTensor&,
                             bool, bool);

constexpr const char* kTaps = "point_taps";
constexpr int64_t kMaxAxes = 3;
constexpr int64_t kGrain = 1 << 12;  // pairs of a thread at least
constexpr int64_t kPiece = 1 << 16;  // pairs whose gradients are in memory

void check_taps(const at::Tensor& positions, const at::Tensor& spacing, const at::Tensor& query,
                const at::Tensor& key, int64_t radius, const at::Tensor& special) {
  Checker check(kTaps);
  check.tensor("positions", positions, 2, "[tokens, axes]");
  const auto axes = positions.sym_size(1);
  TORCH_CHECK(axes >= 1 && axes <= kMaxAxes, kTaps, ": expected 1 to ", kMaxAxes, " axes, got ",
              axes);
  Checker(kTaps).tensor("spacing", spacing, 1, "[1] or [axes]");  // positions may be double
  TORCH_CHECK(spacing.sym_size(0) == 1 || spacing.sym_size(0) == axes, kTaps,
              ": spacing must have 1 number or one for each of ", axes, " axes, got ",
              spacing.sym_size(0));
  for (const auto* index : {&query, &key})
    TORCH_CHECK(index->scalar_type() == at::kLong && index->dim() == 1, kTaps,
                ": query and key must be int64 [E], got ", index->scalar_type(), " ",
                index->sym_sizes());
  TORCH_CHECK(query.sym_size(0) == key.sym_size(0), kTaps, ": there are ", query.sym_size(0),
              " queries and ", key.sym_size(0), " keys; each pair has one of both");
  TORCH_CHECK(radius >= 0, kTaps, ": expected a radius of 0 or more, got ", radius);
  TORCH_CHECK(!special.defined() || (special.scalar_type() == at::kBool && special.dim() == 1 &&
                                     special.sym_size(0) == positions.sym_size(0)),
              kTaps, ": special must be bool [", positions.sym_size(0), "], one for each token");
}

// What the kernels and LibTorch would compute with without an error.
void check_values(const at::Tensor& positions, const at::Tensor& spacing, const at::Tensor& query,
                  const at::Tensor& key, const at::Tensor& special) {
  TORCH_CHECK(spacing.gt(0).all().item<bool>() && spacing.isfinite().all().item<bool>(), kTaps,
              ": spacing must be positive, got ", spacing.min().item<double>(),
              "; give it in the unit of the positions");
  const auto finite = positions.isfinite().all(1);
  const auto bad = (special.defined() ? finite.logical_or(special) : finite).logical_not();
  TORCH_CHECK(!bad.any().item<bool>(), kTaps, ": the position of token ",
              bad.to(at::kByte).argmax().item<int64_t>(), " is not finite");
  for (const auto& [name, index] : {std::pair("query", query), std::pair("key", key)})
    TORCH_CHECK(index.numel() == 0 || (index.min().item<int64_t>() >= 0 &&
                                       index.max().item<int64_t>() < positions.size(0)),
                kTaps, ": ", name, " must be 0 to ", positions.size(0) - 1, ", the tokens, got ",
                index.min().item<int64_t>() < 0 ? index.min().item<int64_t>()
                                                : index.max().item<int64_t>());
}

// The cell of an offset along each axis, and where in the cell it lies. Differences are taken in
// double and before they are scaled: coordinates may be large.
struct Cell {
  Cell(const double* a, const double* b, const double* spacing, int64_t axes, int64_t radius)
      : axes(axes) {
    const auto limit = static_cast<double>(radius);
    for (int64_t x = 0; x < axes; ++x) {
      const double u = (a[x] - b[x]) / spacing[x];
      inside[x] = u >= -limit && u <= limit;
      const double bounded = std::min(std::max(u, -limit), limit);
      const double floor = std::min(std::floor(bounded), std::max(limit - 1, -limit));
      low[x] = static_cast<int64_t>(floor) + radius;
      part[x] = bounded - floor;
    }
  }
  // The weight of corner t along an axis; the first axis is its highest bit.
  bool upper(int64_t t, int64_t x) const { return t >> (axes - 1 - x) & 1; }
  double weight(int64_t t, int64_t x) const { return upper(t, x) ? part[x] : 1 - part[x]; }
  double weight(int64_t t) const {
    double product = 1;
    for (int64_t x = 0; x < axes; ++x) product *= weight(t, x);
    return product;
  }
  int64_t slot(int64_t t, int64_t side) const {
    int64_t slot = 0;
    for (int64_t x = 0; x < axes; ++x)
      slot = slot * side + std::min(low[x] + upper(t, x), side - 1);
    return slot;
  }

  const int64_t axes;
  int64_t low[kMaxAxes];
  double part[kMaxAxes];
  bool inside[kMaxAxes];
};

// The arguments as the loops, which are plain C++, read them. Other devices copy them, which is
// little beside the work on the pairs.
class TapsCall {
 public:
  TapsCall(const at::Tensor& positions, const at::Tensor& spacing, const at::Tensor& query,
           const at::Tensor& key, int64_t radius, const OptionalTensor& special)
      : axes(positions.size(1)),
        radius(radius),
        pairs(query.size(0)),
        positions_(positions.to(at::kCPU, at::kDouble).contiguous()),
        spacing_(spacing.to(at::kCPU, at::kDouble).expand({axes}).contiguous()),
        query_(query.cpu().contiguous()),
        key_(key.cpu().contiguous()),
        special_(value_or_undefined(special)) {
    if (special_.defined()) special_ = special_.cpu().contiguous();
  }

  // The slot of a pair with a class token behind those of the lattice, or -1.
  int64_t special_slot(int64_t e) const {
    if (!special_.defined()) return -1;
    const bool* const flags = special_.data_ptr<bool>();
    return flags[query(e)] && flags[key(e)] ? 0 : flags[query(e)] ? 1 : flags[key(e)] ? 2 : -1;
  }
  Cell cell(int64_t e) const {
    const double* const at = positions_.data_ptr<double>();
    return {at + query(e) * axes, at + key(e) * axes, spacing_.data_ptr<double>(), axes, radius};
  }
  double offset(int64_t e, int64_t x) const {
    const double* const at = positions_.data_ptr<double>();
    return at[query(e) * axes + x] - at[key(e) * axes + x];
  }
  int64_t query(int64_t e) const { return query_.data_ptr<int64_t>()[e]; }
  int64_t key(int64_t e) const { return key_.data_ptr<int64_t>()[e]; }
  double spacing(int64_t x) const { return spacing_.data_ptr<double>()[x]; }
  int64_t taps() const { return int64_t{1} << axes; }

  const int64_t axes, radius, pairs;

 private:
  at::Tensor positions_, spacing_, query_, key_, special_;
};

void find_slots(const TapsCall& call, int64_t* slots) {
  const int64_t taps = call.taps(), side = 2 * call.radius + 1;
  const int64_t lattice = lattice_slots(call.axes, call.radius);
  parallel_ranges(call.pairs, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const int64_t special = call.special_slot(e);
      const auto cell = call.cell(e);
      for (int64_t t = 0; t < taps; ++t)
        slots[e * taps + t] = special >= 0 ? lattice + special : cell.slot(t, side);
    }
  });
}

template <typename T>
void find_phi(const TapsCall& call, T* phi) {
  const int64_t taps = call.taps();
  parallel_ranges(call.pairs, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const bool special = call.special_slot(e) >= 0;
      const auto cell = call.cell(e);
      for (int64_t t = 0; t < taps; ++t)
        phi[e * taps + t] = static_cast<T>(special ? t == 0 : cell.weight(t));
    }
  });
}

// The gradients of u of pairs [first, first + count), from those of phi.
template <typename T>
void find_offset_gradients(const TapsCall& call, const T* d, int64_t first, int64_t count,
                           double* out) {
  const int64_t taps = call.taps(), axes = call.axes;
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    std::fill(out + begin * axes, out + end * axes, 0.0);
    for (int64_t e = first + begin; e < first + end; ++e) {
      if (call.special_slot(e) >= 0 || call.radius == 0) continue;
      const auto cell = call.cell(e);
      for (int64_t x = 0; x < axes; ++x) {
        if (!cell.inside[x]) continue;
        double sum = 0;
        for (int64_t t = 0; t < taps; ++t) {
          double slope = cell.upper(t, x) ? d[e * taps + t] : -d[e * taps + t];
          for (int64_t y = 0; y < axes; ++y)
            if (y != x) slope *= cell.weight(t, y);
          sum += slope;
        }
        out[(e - first) * axes + x] = sum;
      }
    }
  });
}

// dp_i = sum of du / spacing over the pairs of query i, minus that over the pairs of key i; and
// dspacing = - sum of du u / spacing. The order of the sums is that of the pairs.
template <typename T>
void sum_gradients(const TapsCall& call, const T* d_phi, double* dp, double* dh) {
  std::vector<double> du(std::min(call.pairs, kPiece) * call.axes);
  for (int64_t first = 0; first < call.pairs; first += kPiece) {
    const int64_t count = std::min(kPiece, call.pairs - first);
    find_offset_gradients(call, d_phi, first, count, du.data());
    for (int64_t e = first; e < first + count; ++e)
      for (int64_t x = 0; x < call.axes; ++x) {
        const double slope = du[(e - first) * call.axes + x];
        if (slope == 0) continue;  // such a token may have no position
        const double h = call.spacing(x), d = slope / h;
        dp[call.query(e) * call.axes + x] += d;
        dp[call.key(e) * call.axes + x] -= d;
        dh[x] -= d * call.offset(e, x) / h;
      }
  }
}

at::Tensor slots_forward(const at::Tensor& positions, const at::Tensor& spacing,
                         const at::Tensor& query, const at::Tensor& key, int64_t radius,
                         const OptionalTensor& special) {
  check_taps(positions, spacing, query, key, radius, value_or_undefined(special));
  check_values(positions, spacing, query, key, value_or_undefined(special));
  const TapsCall call(positions, spacing, query, key, radius, special);
  auto slots = at::empty({call.pairs, call.taps()}, at::kLong);
  find_slots(call, slots.data_ptr<int64_t>());
  return slots.to(query.device());
}

at::Tensor phi_forward(const at::Tensor& positions, const at::Tensor& spacing,
                       const at::Tensor& query, const at::Tensor& key, int64_t radius,
                       const OptionalTensor& special) {
  check_taps(positions, spacing, query, key, radius, value_or_undefined(special));
  check_values(positions, spacing, query, key, value_or_undefined(special));
  const TapsCall call(positions, spacing, query, key, radius, special);
  const auto type = spacing.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  auto phi = at::empty({call.pairs, call.taps()}, type);
  AT_DISPATCH_FLOATING_TYPES(type, kTaps,
                             [&] { find_phi<scalar_t>(call, phi.data_ptr<scalar_t>()); });
  return phi.to(spacing.options());
}

// The pairs in plain form: their offsets u [E,axes], and which have a class token.
struct PlainOffsets {
  PlainOffsets(const at::Tensor& positions, const at::Tensor& spacing, const at::Tensor& query,
               const at::Tensor& key, const OptionalTensor& special_) {
    auto at = positions;
    if (special_.has_value()) {
      at = at.masked_fill(special_->unsqueeze(1), 0);  // they may have no position
      special = special_->index_select(0, query).logical_or(special_->index_select(0, key));
    }
    u = (at.index_select(0, query) - at.index_select(0, key)).to(spacing.scalar_type()) / spacing;
  }
  at::Tensor u, special;
};

at::Tensor phi_of_offsets(const at::Tensor& u, const at::Tensor& special, int64_t radius) {
  const auto limit = static_cast<double>(radius);
  const auto bounded = (radius == 0 ? u.detach() : u).clamp(-limit, limit);
  const auto part = bounded - bounded.detach().floor().clamp_max(std::max(limit - 1, -limit));
  auto phi = at::ones_like(u.narrow(1, 0, 1));
  for (const auto& x : part.split(1, 1))  // the first axis is the highest bit of a tap
    phi = (phi.unsqueeze(2) * at::cat({1 - x, x}, 1).unsqueeze(1)).flatten(1);
  if (!special.defined()) return phi;
  const auto first = at::arange(phi.size(1), special.options().dtype(at::kLong)).eq(0);
  return at::where(special.unsqueeze(1), first.to(phi.options()), phi);
}

at::Tensor phi_plain(const at::Tensor& positions, const at::Tensor& spacing,
                     const at::Tensor& query, const at::Tensor& key, int64_t radius,
                     const OptionalTensor& special) {
  const PlainOffsets of(positions, spacing, query, key, special);
  return phi_of_offsets(of.u, of.special, radius);
}

Tensors taps_backward_plain(const at::Tensor& d, const at::Tensor& positions,
                            const at::Tensor& spacing, const at::Tensor& query,
                            const at::Tensor& key, int64_t radius, const OptionalTensor& special,
                            bool needs_positions, bool needs_spacing) {
  const auto form = [&](const Tensors& given) {
    return Tensors{phi_plain(given[0], given[1], query, key, radius, special)};
  };
  const std::vector<bool> needs = {needs_positions, needs_spacing};
  const Tensors inputs = {positions, spacing};
  auto found = plain_gradients(form, inputs, {d}, needs);
  for (size_t i = 0; i < 2; ++i)
    if (!found[i].defined())  // as for radius 0
      found[i] = needs[i] ? at::zeros_like(inputs[i]) : at::empty({0}, inputs[i].options());
  return found;
}

at::Tensor empty_taps(const at::Tensor& positions, const at::Tensor& query,
                      const at::TensorOptions& options) {
  return at::empty_symint({query.sym_size(0), int64_t{1} << positions.size(1)}, options);
}

at::Tensor slots_meta(const at::Tensor& positions, const at::Tensor& spacing,
                      const at::Tensor& query, const at::Tensor& key, int64_t radius,
                      const OptionalTensor& special) {
  check_taps(positions, spacing, query, key, radius, value_or_undefined(special));
  return empty_taps(positions, query, query.options());
}

at::Tensor phi_meta(const at::Tensor& positions, const at::Tensor& spacing, const at::Tensor& query,
                    const at::Tensor& key, int64_t radius, const OptionalTensor& special) {
  check_taps(positions, spacing, query, key, radius, value_or_undefined(special));
  return empty_taps(positions, query, spacing.options());
}

Tensors taps_backward(const at::Tensor& d, const at::Tensor& positions, const at::Tensor& spacing,
                      const at::Tensor& query, const at::Tensor& key, int64_t radius,
                      const OptionalTensor& special, bool needs_positions, bool needs_spacing) {
  check_taps(positions, spacing, query, key, radius, value_or_undefined(special));
  check_values(positions, spacing, query, key, value_or_undefined(special));
  const TapsCall call(positions, spacing, query, key, radius, special);
  TORCH_CHECK(d.dim() == 2 && d.size(0) == call.pairs && d.size(1) == call.taps(), kTaps,
              ": the gradient of phi must be [", call.pairs, ", ", call.taps(), "], got ",
              d.sizes());
  const auto type = d.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto d_phi = d.to(at::kCPU, type).contiguous();
  const auto dp = at::zeros(positions.sizes(), at::kDouble),
             dh = at::zeros({call.axes}, at::kDouble);
  AT_DISPATCH_FLOATING_TYPES(type, kTaps, [&] {
    sum_gradients(call, d_phi.data_ptr<scalar_t>(), dp.data_ptr<double>(), dh.data_ptr<double>());
  });
  const auto d_spacing = spacing.size(0) == 1 ? dh.sum(0, /*keepdim=*/true) : dh;
  return {needs_positions ? dp.to(positions.options()) : at::empty({0}, positions.options()),
          needs_spacing ? d_spacing.to(spacing.options()) : at::empty({0}, spacing.options())};
}

Tensors taps_backward_meta(const at::Tensor&, const at::Tensor& positions,
                           const at::Tensor& spacing, const at::Tensor&, const at::Tensor&, int64_t,
                           const OptionalTensor&, bool needs_positions, bool needs_spacing) {
  return {needs_positions ? empty_of(positions) : at::empty({0}, positions.options()),
          needs_spacing ? empty_of(spacing) : at::empty({0}, spacing.options())};
}

at::Tensor call_slots(const at::Tensor& positions, const at::Tensor& spacing,
                      const at::Tensor& query, const at::Tensor& key, int64_t radius,
                      const OptionalTensor& special) {
  static const Op<TapsForward> op("translution::point_slots");
  return op(positions, spacing, query, key, radius, special);
}

at::Tensor call_phi(const at::Tensor& positions, const at::Tensor& spacing, const at::Tensor& query,
                    const at::Tensor& key, int64_t radius, const OptionalTensor& special) {
  static const Op<TapsForward> op("translution::point_phi");
  return op(positions, spacing, query, key, radius, special);
}

Tensors taps_gradients(const BackwardCall& b, int64_t radius) {
  static const Op<TapsBackward> op("translution::point_phi_backward");
  const auto& s = b.saved;
  auto found = op(b.d[0], s[0], s[1], s[2], s[3], radius, optional(s[4]), b.needs[0], b.needs[1]);
  for (size_t i = 0; i < found.size(); ++i)
    if (!b.needs[i]) found[i] = at::Tensor();
  return found;
}

// Slots are numbers of rows: they have no gradient.
at::Tensor slots_autograd(const at::Tensor& positions, const at::Tensor& spacing,
                          const at::Tensor& query, const at::Tensor& key, int64_t radius,
                          const OptionalTensor& special) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_slots(positions, spacing, query, key, radius, special);
}

at::Tensor phi_autograd(const at::Tensor& positions, const at::Tensor& spacing,
                        const at::Tensor& query, const at::Tensor& key, int64_t radius,
                        const OptionalTensor& special) {
  const Differentiable call(kTaps, {positions, spacing});
  const auto phi =
      call.below([&] { return call_phi(positions, spacing, query, key, radius, special); });
  call.finish({phi}, {positions, spacing, query, key, value_or_undefined(special)},
              [radius](const BackwardCall& b) { return taps_gradients(b, radius); });
  return phi;
}

}  // namespace

int64_t lattice_slots(int64_t axes, int64_t radius) {
  int64_t slots = 1;
  for (int64_t x = 0; x < axes; ++x) slots *= 2 * radius + 1;
  return slots;
}

std::pair<at::Tensor, at::Tensor> point_taps(const at::Tensor& positions, const at::Tensor& spacing,
                                             const at::Tensor& query, const at::Tensor& key,
                                             int64_t radius, const at::Tensor& special) {
  return {call_slots(positions, spacing, query, key, radius, optional(special)),
          call_phi(positions, spacing, query, key, radius, optional(special))};
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<TapsForward>(
      m,
      "point_slots(Tensor positions, Tensor spacing, Tensor query, Tensor key, int radius, "
      "Tensor? special=None) -> Tensor",
      {slots_forward, nullptr, slots_meta, slots_autograd, nullptr});
  register_op<TapsForward>(
      m,
      "point_phi(Tensor positions, Tensor spacing, Tensor query, Tensor key, int radius, "
      "Tensor? special=None) -> Tensor",
      {phi_forward, nullptr, phi_meta, phi_autograd, phi_plain});
  register_op<TapsBackward>(
      m,
      "point_phi_backward(Tensor d, Tensor positions, Tensor spacing, Tensor query, Tensor key, "
      "int radius, Tensor? special, bool needs_positions, bool needs_spacing) -> Tensor[]",
      {taps_backward, nullptr, taps_backward_meta, nullptr, taps_backward_plain});
}

}  // namespace translution
