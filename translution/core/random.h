#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// Random number generator whose sequence depends only on its key, such as {seed, epoch, sample}.
/// Results do not depend on the number of threads or the order in which they run.
class TRANSLUTION_API Random {
 public:
  explicit Random(std::initializer_list<uint64_t> key);

  uint64_t bits();
  double uniform();  ///< in [0, 1)
  double uniform(double low, double high);
  int64_t below(int64_t count);  ///< integer in [0, count), uniformly distributed
  double normal();               ///< mean 0, standard deviation 1
  bool chance(double probability) { return uniform() < probability; }

 private:
  uint64_t state_;
};

/// A random permutation of 0 to count - 1.
TRANSLUTION_API std::vector<int64_t> permutation(int64_t count, Random random);

}  // namespace translution
