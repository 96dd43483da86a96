#include "bench_points.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "model_flags.h"
#include "translution/ops/point_taps.h"

namespace translution::cli {
namespace {

constexpr int64_t kMaxPoints = 1 << 20, kAxes = 3;

}  // namespace

std::string PointCase::text() const {
  const auto near = lattice.neighbours ? fmt::format("{} neighbours", lattice.neighbours)
                                       : std::string("all pairs");
  return fmt::format("{} points, {} {}, radius {}, {}", points, lattice.axes,
                     lattice.axes == 1 ? "axis" : "axes", lattice.radius, near);
}

int64_t PointCase::pairs(int64_t batch) const {
  return batch * points * (lattice.neighbours ? std::min(lattice.neighbours, points) : points);
}

int64_t PointCase::rows(int64_t batch) const {
  const int64_t taps = int64_t{1} << lattice.axes;
  return std::min(batch * points * lattice_slots(lattice.axes, lattice.radius),
                  pairs(batch) * taps);
}

at::Tensor PointCase::positions(int64_t batch) const {
  return torch::rand({batch, points, lattice.axes});
}

PointFlags::PointFlags(Command command)
    : points_(command.option("--points", "N", "points of each cloud, at random, instead of a grid",
                             "Points")),
      axes_(command.option("--axes", "N", fmt::format("numbers of a position ({})", kAxes),
                           "Points")),
      neighbours_(command.option("--neighbours", "N",
                                 "nearest points that a point attends to (all)", "Points")) {}

PointCase PointFlags::read(int64_t radius) const {
  PointCase found;
  found.points = number_or(0, points_, kMaxPoints);
  for (const auto& option : {axes_, neighbours_})
    if (found.points == 0 && option.given())
      throw std::invalid_argument(option.name() + ": belongs to --points N");
  if (found.points == 0) return found;
  auto& lattice = found.lattice;
  lattice.axes = number_or(kAxes, axes_, kAxes);
  lattice.radius = std::max<int64_t>(1, radius);
  lattice.neighbours = number_or(0, neighbours_, kMaxPoints);
  const double share = static_cast<double>(found.pairs(1)) /
                       (static_cast<double>(found.points) * static_cast<double>(found.points));
  const double reach = 0.6 * std::pow(share, 1.0 / static_cast<double>(lattice.axes));
  lattice.spacing = {reach / static_cast<double>(lattice.radius)};
  return found;
}

PointProducts::PointProducts(const PointAttention& layer, const at::Tensor& positions) {
  const int64_t batch = positions.size(0), points = positions.size(1);
  const auto pairs =
      layer->pairs(positions.flatten(0, 1), at::arange(batch + 1, at::kLong) * points);
  for (const auto& parameter : layer->named_parameters(/*recurse=*/false)) {
    const auto& [name, table] = std::pair(parameter.key(), parameter.value());
    if (table.dim() != 3) continue;
    const auto x = torch::randn({batch * points, table.size(1)}).requires_grad_();
    const bool query = name.rfind("query", 0) == 0, key = name.rfind("key", 0) == 0;
    parts_.push_back({x, table, query ? pairs.query : key ? pairs.key : pairs.value});
  }
}

void PointProducts::forward_and_backward() const {
  for (const auto& part : parts_) {
    const auto encoded = point_encode(part.x, part.table, part.rows);
    torch::autograd::grad({encoded}, {part.x, part.table}, {encoded.detach()});
  }
}

}  // namespace translution::cli
