#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "tests/support/oracle.h"

namespace translution::oracle {
namespace {

using Offset = std::vector<int64_t>;

Offset difference(int64_t i, int64_t j, const std::vector<int64_t>& grid) {
  Offset delta(grid.size());
  for (size_t axis = grid.size(); axis-- > 0; i /= grid[axis], j /= grid[axis])
    delta[axis] = i % grid[axis] - j % grid[axis];
  return delta;
}

// The bucket of a distance under logarithmic sharing: the distance itself up to the radius r, then
// buckets of r + 1, 2 (r + 1), 4 (r + 1)… distances.
int64_t logarithmic(int64_t distance, int64_t radius) {
  if (distance <= radius) return distance;
  return radius + 1 + std::ilogb(double(distance) / double(radius + 1));
}

std::optional<Offset> share(const Offset& delta, const OffsetOptions& options) {
  bool far = false;
  for (const int64_t d : delta) far = far || std::abs(d) > options.radius;
  if (options.sharing == Sharing::none || !far) return delta;
  if (options.sharing == Sharing::window) return std::nullopt;
  Offset bucket;
  for (const int64_t d : delta) {
    const int64_t sign = d < 0 ? -1 : 1, distance = std::abs(d);
    if (options.sharing == Sharing::logarithmic)
      bucket.push_back(sign * logarithmic(distance, options.radius));
    else
      bucket.push_back(distance > options.radius ? sign * (options.radius + 1) : 0);
  }
  return bucket;
}

Pairing empty_pairing(int64_t tokens) {
  Pairing pairing;
  pairing.tokens = tokens;
  pairing.slot.assign(tokens * tokens, -1);
  pairing.key_slot.assign(tokens * tokens, -1);
  return pairing;
}

// Every pair has its own row, in row-major order. The key reads the row of the reverse pair.
Pairing pair_absolute(int64_t tokens, bool causal) {
  Pairing pairing = empty_pairing(tokens);
  for (int64_t i = 0; i < tokens; ++i)
    for (int64_t j = 0; j < (causal ? i + 1 : tokens); ++j)
      pairing.slot[i * tokens + j] = pairing.slots++;
  for (int64_t i = 0; i < tokens; ++i)
    for (int64_t j = 0; j < tokens; ++j)
      pairing.key_slot[i * tokens + j] =
          causal ? pairing.slot[i * tokens + j] : pairing.slot[j * tokens + i];
  return pairing;
}

}  // namespace

Pairing pair_grid(const OffsetOptions& options) {
  int64_t cells = 1;
  for (const int64_t side : options.grid) cells *= side;
  const int64_t first = options.cls ? 1 : 0, N = cells + first;
  if (options.encoding == Encoding::absolute) return pair_absolute(N, options.causal);

  // A map of offsets is sorted by the first axis, then the second, and so on.
  std::map<Offset, int64_t> slot_of;
  for (int64_t i = 0; i < cells; ++i)
    for (int64_t j = 0; j < (options.causal ? i + 1 : cells); ++j)
      if (const auto bucket = share(difference(i, j, options.grid), options)) slot_of[*bucket] = 0;
  Pairing pairing = empty_pairing(N);
  for (auto& entry : slot_of) entry.second = pairing.slots++;

  const auto set = [&](int64_t i, int64_t j, int64_t slot, int64_t key_slot) {
    pairing.slot[i * N + j] = slot;
    pairing.key_slot[i * N + j] = key_slot;
  };
  for (int64_t i = 0; i < cells; ++i) {
    for (int64_t j = 0; j < (options.causal ? i + 1 : cells); ++j) {
      const auto bucket = share(difference(i, j, options.grid), options);
      if (!bucket) continue;
      const int64_t slot = slot_of.at(*bucket);
      const auto reverse = share(difference(j, i, options.grid), options);
      set(i + first, j + first, slot, options.causal ? slot : slot_of.at(*reverse));
    }
  }
  if (!options.cls) return pairing;
  const int64_t itself = pairing.slots, in = itself + 1, out = itself + 2;
  pairing.slots += 3;
  set(0, 0, itself, itself);
  for (int64_t t = 1; t < N; ++t) {
    if (!options.causal) set(0, t, in, in);
    set(t, 0, out, out);
  }
  return pairing;
}

Pairing pair_relation(const std::vector<int64_t>& relation, int64_t tokens,
                      const std::vector<int64_t>& mirror) {
  Pairing pairing = empty_pairing(tokens);
  pairing.slots = static_cast<int64_t>(mirror.size());
  pairing.slot = relation;
  for (size_t p = 0; p < relation.size(); ++p)
    if (relation[p] >= 0) pairing.key_slot[p] = mirror[relation[p]];
  return pairing;
}

Pairing pair_all(int64_t tokens) {
  Pairing pairing = empty_pairing(tokens);
  pairing.slots = 1;
  pairing.slot.assign(tokens * tokens, 0);
  pairing.key_slot.assign(tokens * tokens, 0);
  return pairing;
}

}  // namespace translution::oracle
