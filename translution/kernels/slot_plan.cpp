#include "translution/kernels/slot_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace translution::kernels {
namespace {

// Rows of a product. With fewer than kMinChunkRows the libraries lose speed, so shorter spans are
// merged, even though their rows must then be gathered by copying. With more than kChunkNumbers
// elements, the encodings of a chunk no longer fit into an L2 cache of 1 MB (256 rows of 192
// channels). With more than kMaxChunkRows, narrow products slow down.
constexpr int64_t kMinChunkRows = 128;
constexpr int64_t kChunkNumbers = 256 * 192;
constexpr int64_t kMaxChunkRows = 1024;

struct TokenPair {
  int64_t i, j;
};

int32_t index_of(std::vector<int64_t>& tokens, std::map<int64_t, int32_t>& indices, int64_t token) {
  const auto [entry, is_new] = indices.emplace(token, static_cast<int32_t>(tokens.size()));
  if (is_new) tokens.push_back(token);
  return entry->second;
}

Chunk make_chunk(const PairSpan& span, const TokenPair* first, const TokenPair* last) {
  Chunk chunk{span.slot, span.key_slot, {}, {}, {}, /*matching=*/true};
  std::map<int64_t, int32_t> query_indices, key_indices;
  for (const TokenPair* pair = first; pair != last; ++pair)
    chunk.pairs.push_back({index_of(chunk.queries, query_indices, pair->i),
                           index_of(chunk.keys, key_indices, pair->j)});
  chunk.matching =
      chunk.queries.size() == chunk.pairs.size() && chunk.keys.size() == chunk.pairs.size();
  return chunk;
}

// The pairs of one slot and key slot. span_ends[s] is the index after the last pair of span s.
struct SlotPairs {
  PairSpan first;
  std::vector<TokenPair> pairs;
  std::vector<size_t> span_ends;
};

std::vector<SlotPairs> pairs_by_slot(const std::vector<PairSpan>& spans) {
  std::map<std::pair<int64_t, int64_t>, std::vector<const PairSpan*>> slots;
  for (const PairSpan& span : spans) slots[{span.slot, span.key_slot}].push_back(&span);
  std::vector<SlotPairs> groups;
  for (const auto& [slot, slot_spans] : slots) {
    SlotPairs group{*slot_spans.front(), {}, {}};
    for (const PairSpan* span : slot_spans) {
      for (int64_t t = 0; t < span->length; ++t)
        group.pairs.push_back({span->i + t * span->di, span->j + t * span->dj});
      group.span_ends.push_back(group.pairs.size());
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// Whether tokens have more than two partners on average. Such a slot becomes one chunk, in which
// each token is encoded once.
bool is_dense(const std::vector<TokenPair>& pairs) {
  std::map<int64_t, int> queries, keys;
  for (const auto& pair : pairs) ++queries[pair.i], ++keys[pair.j];
  return pairs.size() > 2 * std::max(queries.size(), keys.size());
}

void cut_slot(const SlotPairs& group, int64_t batch, int64_t width, std::vector<Chunk>& chunks) {
  const auto& [span, pairs, span_ends] = group;
  if (is_dense(pairs)) {
    chunks.push_back(make_chunk(span, pairs.data(), pairs.data() + pairs.size()));
    return;
  }
  const size_t max_pairs =
      std::max<int64_t>(1, std::min(kMaxChunkRows, kChunkNumbers / width) / batch);
  const size_t min_pairs = std::max<int64_t>(1, kMinChunkRows / batch);
  size_t begin = 0;
  for (const size_t end : span_ends) {
    while (end - begin >= min_pairs) {
      const size_t count = std::min(max_pairs, end - begin);
      chunks.push_back(make_chunk(span, &pairs[begin], &pairs[begin] + count));
      begin += count;
    }
  }
  if (begin < pairs.size())
    chunks.push_back(make_chunk(span, &pairs[begin], pairs.data() + pairs.size()));
}

// Assigns chunks that write the same table row to one task. Queries and keys have separate tables,
// so a slot and a key slot with the same number do not conflict.
std::vector<int32_t> find_tasks(const std::vector<Chunk>& chunks) {
  std::vector<int32_t> parent(chunks.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int32_t c) {
    while (parent[c] != c) c = parent[c] = parent[parent[c]];
    return c;
  };
  std::map<int64_t, int32_t> by_slot, by_key_slot;
  for (int32_t c = 0; c < static_cast<int32_t>(chunks.size()); ++c) {
    const int32_t slot = by_slot.emplace(chunks[c].slot, c).first->second;
    const int32_t key_slot = by_key_slot.emplace(chunks[c].key_slot, c).first->second;
    parent[root(c)] = root(slot);
    parent[root(c)] = root(key_slot);
  }
  for (int32_t c = 0; c < static_cast<int32_t>(chunks.size()); ++c) parent[c] = root(c);
  return parent;
}

SlotWork work_of(const std::vector<PairSpan>& spans, int64_t batch, int64_t width) {
  SlotWork work{1, 0, 0, batch, width};
  std::set<int64_t> slots;
  for (const PairSpan& span : spans) {
    slots.insert(span.slot);
    work.pairs += span.length;
    work.tokens = std::max({work.tokens, span.i + span.di * (span.length - 1) + 1,
                            span.j + span.dj * (span.length - 1) + 1});
  }
  work.slots = static_cast<int64_t>(slots.size());
  return work;
}

// Assigns tasks, largest first, to the shard with the lowest load. A chunk counts as at least
// `min_rows` rows.
std::vector<std::vector<int32_t>> balance_shards(const std::vector<Chunk>& chunks, int64_t min_rows,
                                                 int64_t count) {
  struct Task {
    int64_t rows = 0;
    std::vector<int32_t> chunks;
  };
  const auto task_of = find_tasks(chunks);
  std::map<int32_t, Task> tasks;
  for (int32_t c = 0; c < static_cast<int32_t>(task_of.size()); ++c) {
    tasks[task_of[c]].rows += std::max(chunks[c].rows(), min_rows);
    tasks[task_of[c]].chunks.push_back(c);
  }
  std::vector<const Task*> order;
  for (const auto& [id, task] : tasks) order.push_back(&task);
  std::stable_sort(order.begin(), order.end(),
                   [](const Task* a, const Task* b) { return a->rows > b->rows; });
  std::vector<std::vector<int32_t>> shards(count);
  std::vector<int64_t> load(count, 0);
  for (const Task* task : order) {
    const auto lightest = std::min_element(load.begin(), load.end()) - load.begin();
    load[lightest] += task->rows;
    shards[lightest].insert(shards[lightest].end(), task->chunks.begin(), task->chunks.end());
  }
  return shards;
}

SlotPlan make_slot_plan(const std::vector<PairSpan>& spans, int64_t batch, int64_t width) {
  SlotPlan plan;
  plan.counts = count_shards(work_of(spans, batch, width));
  for (const auto& group : pairs_by_slot(spans))
    cut_slot(group, batch / plan.counts.parts, width, plan.chunks);
  for (Chunk& chunk : plan.chunks) {
    chunk.first_row = plan.rows;
    plan.rows += chunk.rows();
    plan.max_queries = std::max<int64_t>(plan.max_queries, chunk.queries.size());
    plan.max_keys = std::max<int64_t>(plan.max_keys, chunk.keys.size());
  }
  plan.shards = balance_shards(plan.chunks, 2 * kRowsOfAMatrix * plan.counts.parts / batch,
                               plan.counts.sums * plan.counts.parts);
  return plan;
}

int64_t count_encoded_rows(const std::vector<PairSpan>& spans) {
  int64_t rows = 0;
  for (const auto& [span, pairs, span_ends] : pairs_by_slot(spans))
    rows += is_dense(pairs) ? make_chunk(span, pairs.data(), pairs.data() + pairs.size()).rows()
                            : 2 * static_cast<int64_t>(pairs.size());
  return rows;
}

}  // namespace

std::shared_ptr<const SlotPlan> slot_plan(const Pairs& pairs, int64_t batch, int64_t width) {
  return pairs.derived<SlotPlan>(batch, width,
                                 [&] { return make_slot_plan(pairs.spans(), batch, width); });
}

int64_t encoded_rows(const Pairs& pairs) {
  return *pairs.derived<int64_t>(0, 0, [&] { return count_encoded_rows(pairs.spans()); });
}

}  // namespace translution::kernels
