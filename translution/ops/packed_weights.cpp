#include "translution/ops/packed_weights.h"

#include <ATen/ATen.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "translution/kernels/bf16.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

using kernels::Bf16;

// The digest covers all numbers of weights up to this size, which takes 0.2 ms.
constexpr int64_t kSmallBytes = 4 << 20;

// Identifies a parameter by its memory, so that `detach` and other aliases find the same copies.
struct Key {
  const c10::StorageImpl* storage;
  int64_t offset;
  std::vector<int64_t> sizes;
  bool operator<(const Key& other) const {
    return std::tie(storage, offset, sizes) < std::tie(other.storage, other.offset, other.sizes);
  }
};

// The state of a parameter when it was packed: its version and a digest of its numbers.
struct Content {
  int64_t version = -1;
  uint64_t digest = 0;
  bool operator==(const Content& other) const {
    return version == other.version && digest == other.digest;
  }
};

struct Copy {
  at::Tensor tiles;
  Content content;
};

struct Entry {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // expires when the address is reused
  uint64_t digest = 0;                                // as of the last forward call
  Copy copies[2];                                     // straight, transposed
};

struct Registry {
  std::mutex mutex;
  std::map<Key, Entry> entries;
};

Registry& registry() {
  static Registry* const all = new Registry;  // parameters may outlive static objects
  return *all;
}

Key key_of(const at::Tensor& weight) {
  return {weight.storage().unsafeGetStorageImpl(), weight.storage_offset(), weight.sizes().vec()};
}

int64_t version_of(const at::Tensor& weight) {
  return weight.is_inference() ? 0 : weight._version();
}

uint64_t digest_of(const at::Tensor& weight) {
  const auto* numbers = weight.data_ptr<float>();
  if (static_cast<int64_t>(weight.nbytes()) <= kSmallBytes)
    return XXH3_64bits(numbers, weight.nbytes());
  const int64_t columns = weight.size(-1), rows = weight.numel() / columns;
  std::vector<float> sample(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row)  // a different column in each row
    sample[static_cast<size_t>(row)] = numbers[row * columns + row % columns];
  return XXH3_64bits(sample.data(), sample.size() * sizeof(float));
}

bool is_packable(const at::Tensor& weight) {
  return weight.is_cpu() && weight.scalar_type() == at::kFloat && weight.dim() >= 2 &&
         weight.is_leaf() && weight.requires_grad() && weight.is_contiguous() && weight.numel() > 0;
}

int64_t matrices_of(const at::Tensor& weight) { return weight.dim() == 3 ? weight.size(0) : 1; }

at::Tensor new_tiles(const at::Tensor& weight, bool transposed) {
  const int64_t k = weight.size(transposed ? -1 : -2), n = weight.size(transposed ? -2 : -1);
  return large_empty({matrices_of(weight), kernels::packed_size(k, n)},
                     at::TensorOptions(at::kBFloat16));
}

template <typename Source>
void pack_as(const Source* numbers, const at::Tensor& weight, bool transposed,
             const at::Tensor& tiles) {
  const int64_t k = weight.size(-2), n = weight.size(-1), size = tiles.size(1);
  const int64_t bands = (k + kernels::kTileDepth - 1) / kernels::kTileDepth;
  parallel_ranges(matrices_of(weight) * bands, 8, [&](int64_t begin, int64_t end) {
    for (int64_t band = begin; band < end; ++band) {
      const int64_t matrix = band / bands, row = band % bands * kernels::kTileDepth;
      kernels::pack_band(numbers + matrix * k * n, row, std::min(kernels::kTileDepth, k - row), k,
                         n, transposed, static_cast<Bf16*>(tiles.data_ptr()) + matrix * size);
    }
  });
}

void pack(const at::Tensor& weight, bool transposed, const at::Tensor& tiles) {
  if (weight.scalar_type() == at::kBFloat16)
    pack_as(static_cast<const Bf16*>(weight.data_ptr()), weight, transposed, tiles);
  else
    pack_as(weight.data_ptr<float>(), weight, transposed, tiles);
}

// Removes entries whose storage was freed. The caller holds the mutex.
void erase_expired(Registry& all) {
  for (auto entry = all.entries.begin(); entry != all.entries.end();)
    entry = entry->second.storage.expired() ? all.entries.erase(entry) : std::next(entry);
}

Entry& entry_of(Registry& all, const at::Tensor& weight) {
  const auto key = key_of(weight);
  auto found = all.entries.find(key);
  if (found != all.entries.end() && !found->second.storage.expired()) return found->second;
  erase_expired(all);
  return all.entries.insert_or_assign(key, Entry{weight.storage().getWeakStorageImpl(), 0, {}})
      .first->second;
}

// Null if there is no entry.
Entry* find_entry(Registry& all, const at::Tensor& weight) {
  const auto found = all.entries.find(key_of(weight));
  return found == all.entries.end() || found->second.storage.expired() ? nullptr : &found->second;
}

}  // namespace

at::Tensor packed_weight(const at::Tensor& weight, bool transposed, bool forward) {
  if (!is_packable(weight)) return {};
  const uint64_t digest = forward ? digest_of(weight) : 0;
  auto& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Entry& entry = entry_of(all, weight);
  if (forward) entry.digest = digest;
  const Content content{version_of(weight), entry.digest};
  Copy& copy = entry.copies[transposed];
  if (copy.tiles.defined() && copy.content == content) return copy.tiles;
  if (!copy.tiles.defined()) copy.tiles = new_tiles(weight, transposed);
  pack(weight, transposed, copy.tiles);
  copy.content = content;
  return copy.tiles;
}

at::Tensor pack_weight(const at::Tensor& weight, bool transposed) {
  const auto tiles = new_tiles(weight, transposed);
  pack(weight, transposed, tiles);
  return tiles;
}

PackedCopies copies_to_update(const at::Tensor& weight) {
  if (!is_packable(weight)) return {};
  auto& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const Entry* const entry = find_entry(all, weight);
  return entry ? PackedCopies{entry->copies[0].tiles, entry->copies[1].tiles} : PackedCopies{};
}

void copies_are_current(const at::Tensor& weight) {
  auto& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Entry* const entry = find_entry(all, weight);
  if (!entry) return;
  entry->digest = digest_of(weight);
  for (Copy& copy : entry->copies) copy.content = {version_of(weight), entry->digest};
}

void drop_packed(const at::Tensor& weight) {
  auto& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const Key first{weight.storage().unsafeGetStorageImpl(), 0, {}};
  for (auto entry = all.entries.lower_bound(first);
       entry != all.entries.end() && entry->first.storage == first.storage;)
    entry = all.entries.erase(entry);
}

}  // namespace translution
