#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// Random numbers that are a function of their key, such as {seed, epoch, sample}: whoever draws
/// them, in whatever order and on however many threads, gets the same ones.
class TRANSLUTION_API Random {
 public:
  explicit Random(std::initializer_list<uint64_t> key);

  uint64_t bits();
  double uniform();  ///< from [0, 1)
  double uniform(double low, double high);
  int64_t below(int64_t count);  ///< from 0 to count - 1, all equally likely
  double normal();               ///< mean 0, deviation 1
  bool chance(double probability) { return uniform() < probability; }

 private:
  uint64_t state_;
};

/// 0 to count - 1 in an order drawn from `random`.
TRANSLUTION_API std::vector<int64_t> permutation(int64_t count, Random random);

}  // namespace translution
