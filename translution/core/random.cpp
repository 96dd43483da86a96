#include "translution/core/random.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace translution {
namespace {

// SplitMix64: a counter with this increment, hashed. Passes the usual statistical test suites.
constexpr uint64_t kIncrement = 0x9E3779B97F4A7C15;

uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Random::Random(std::initializer_list<uint64_t> key) : state_(key.size()) {
  for (const uint64_t part : key)
    state_ = mix_bits(state_ + kIncrement + mix_bits(part + kIncrement));
}

uint64_t Random::bits() { return mix_bits(state_ += kIncrement); }

double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Random::uniform(double low, double high) { return low + (high - low) * uniform(); }

int64_t Random::below(int64_t count) {
  // Rejects the lowest 2^64 mod n values, so that the rest divides evenly.
  const uint64_t n = static_cast<uint64_t>(count), uneven = (0 - n) % n;
  uint64_t drawn = bits();
  while (drawn < uneven) drawn = bits();
  return static_cast<int64_t>(drawn % n);
}

double Random::normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(kTwoPi * uniform());
}

std::vector<int64_t> permutation(int64_t count, Random random) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = count - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  return order;
}

}  // namespace translution
