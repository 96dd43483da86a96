#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command_line.h"
#include "translution/nn/points.h"

namespace translution::cli {

/// Clouds of points that a layer is measured on.
struct PointCase {
  int64_t points = 0;  ///< of each cloud; 0: tokens on a grid instead
  PointOptions lattice;

  std::string text() const;  ///< "1024 points, 3 axes, radius 2, 16 neighbours"
  int64_t pairs(int64_t batch) const;
  /// Rows of an encoding, at most.
  int64_t rows(int64_t batch) const;
  /// Positions [batch,points,axes] in a cube of side 1.
  at::Tensor positions(int64_t batch) const;
};

/// --points, --axes and --neighbours.
class PointFlags {
 public:
  explicit PointFlags(Command command);
  /// The lattice has `radius` points to each side, or 1 if that is 0. Its spacing is such that the
  /// neighbours of a point reach about as far as the lattice.
  PointCase read(int64_t radius) const;

 private:
  Option points_, axes_, neighbours_;
};

/// The products of a layer with the matrices on its lattice, without the pairs.
class PointProducts {
 public:
  PointProducts(const PointAttention& layer, const at::Tensor& positions);
  void forward_and_backward() const;

 private:
  struct Part {
    at::Tensor x, table;
    SlotRows rows;
  };
  std::vector<Part> parts_;
};

}  // namespace translution::cli
