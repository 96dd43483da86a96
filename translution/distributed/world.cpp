#include "translution/distributed/world.h"

#include <ATen/ops/zeros.h>
#include <net/if.h>

#include <algorithm>
#include <functional>
#include <future>
#include <thread>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/distributed/connection.h"
#include "translution/distributed/monitor.h"
#include "translution/distributed/port.h"
#include "translution/ops/large.h"

namespace translution {

using namespace detail;

namespace {

constexpr Seconds kToTell{2};  // that rank 0 gives the others to read why it stops

std::string meeting_place(const WorldPlace& place) { return join(place.address, ":", place.port); }

std::string interface_names() {
  std::string names;
  if (auto* const list = if_nameindex()) {
    for (auto* entry = list; entry->if_index != 0; ++entry)
      names += join(names.empty() ? "" : ", ", entry->if_name);
    if_freenameindex(list);
  }
  return names;
}

void check_interface(const WorldPlace& place, const std::string& name) {
  require(if_nametoindex(name.c_str()) != 0, "interface: expected one of ", interface_names(),
          ", got ", in_quotes(name));
  require(name != "lo" || place.local_size == place.size,
          "interface: expected the network between the machines, one of ", interface_names(),
          ", since WORLD_SIZE is ", place.size, " and LOCAL_WORLD_SIZE ", place.local_size,
          "; got lo");
}

// Opens the store in another thread: c10d waits without a limit for the answer of a server of
// another kind.
std::unique_ptr<Store> open_within(Seconds timeout, const StoreOptions& options,
                                   const std::string& who) {
  std::packaged_task<std::unique_ptr<Store>()> task([options] {
    auto store = open_store(options);
    store->has(kFailure);
    return store;
  });
  auto opened = task.get_future();
  std::thread(std::move(task)).detach();
  ensure(opened.wait_for(timeout) == std::future_status::ready, who,
         " did not understand each other within ", number_text(timeout.count()),
         " s; does another program use the port?");
  try {
    return opened.get();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw std::runtime_error(join(who, " are not connected: ", text.substr(0, text.find('\n'))));
  }
}

std::unique_ptr<Store> connect(const WorldPlace& place, Seconds timeout, bool serves) {
  if (serves)
    ensure(port_is_free(place.port), "rank 0 cannot serve the store at ", meeting_place(place),
           ": the port is in use; choose another MASTER_PORT");
  else
    ensure(port_answers(place.address, place.port, timeout), "rank ", place.rank,
           " found no store at ", meeting_place(place), " within ", number_text(timeout.count()),
           " s; is rank 0 running, and is MASTER_ADDR its address?");
  return open_within(timeout, {place.address, place.port, serves, timeout},
                     join("rank ", place.rank, " and the store at ", meeting_place(place)));
}

// Waits until `done`, at most `timeout`. Returns whether it is.
bool wait_until(const std::function<bool()>& done, Seconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string text_of(const SettingTexts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + '\0' + value + '\0';
  return text;
}

SettingTexts facts_in(const std::string& text) {
  SettingTexts facts;
  for (size_t at = 0; at < text.size();) {
    const size_t name = text.find('\0', at), value = text.find('\0', name + 1);
    facts.emplace_back(text.substr(at, name - at), text.substr(name + 1, value - name - 1));
    at = value + 1;
  }
  return facts;
}

std::string value_in(const SettingTexts& facts, const std::string& wanted) {
  for (const auto& [name, value] : facts)
    if (name == wanted) return value;
  return "unset";
}

// How the facts of a rank differ from those of rank 0; empty if they do not.
std::string difference(const SettingTexts& first, const SettingTexts& other, int rank) {
  auto names = first;
  names.insert(names.end(), other.begin(), other.end());
  for (const auto& [name, ignored] : names) {
    const auto here = value_in(first, name), there = value_in(other, name);
    if (here != there)
      return join("rank ", rank, " has ", name, " ", there, ", rank 0 has ", here,
                  "; start all ranks with the same program, options and data");
  }
  return "";
}

// Copies consecutive elements of the tensors to or from a flat buffer.
class Pieces {
 public:
  explicit Pieces(const std::vector<at::Tensor>& tensors) {
    for (const auto& tensor : tensors) {
      TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
                  "World: expected contiguous float tensors");
      flat_.push_back(tensor.view(-1));
      count_ += tensor.numel();
    }
  }

  int64_t count() const { return count_; }
  // Calls visit(piece, part of `buffer`) for the elements from `begin` on that fill the buffer.
  template <typename Visit>
  void visit(int64_t begin, const at::Tensor& buffer, const Visit& visit) const {
    int64_t offset = 0, filled = 0;
    for (const auto& tensor : flat_) {
      const int64_t size = tensor.numel(), first = std::max<int64_t>(begin + filled - offset, 0);
      const int64_t count = std::min(size - first, buffer.numel() - filled);
      if (count > 0) {
        visit(tensor.narrow(0, first, count), buffer.narrow(0, filled, count));
        filled += count;
      }
      offset += size;
    }
  }

 private:
  std::vector<at::Tensor> flat_;
  int64_t count_ = 0;
};

}  // namespace

struct World::Connection {
  std::unique_ptr<Store> store;
  std::unique_ptr<Group> group;
  std::unique_ptr<Monitor> monitor;
  int64_t checks = 0;     // calls of require_same
  int64_t exchanges = 0;  // begun
  bool told = false;      // the others know that this process stops
};

World::World() = default;

World::World(const WorldPlace& place, const WorldOptions& options)
    : place_(place), options_(options) {
  if (place.size == 1) return;
  ensure(has_c10d(), "WORLD_SIZE is ", place.size,
         ", but this program was built with a LibTorch without c10d and Gloo; use one process");
  check_interface(place, options.interface);
  const Seconds start(options.start_timeout);
  connection_ = std::make_unique<Connection>();
  connection_->store = connect(place, start, /*serves=*/place.rank == 0);
  join_others();
  connection_->monitor =
      std::make_unique<Monitor>(connect(place, start, /*serves=*/false), place.rank, place.size,
                                Seconds(options.rank_timeout), meeting_place(place));
  exchange([&] {
    connection_->group = open_group(*connection_->store, place.rank, place.size, options.interface,
                                    Seconds(options.exchange_timeout));
  });
}

World::~World() {
  if (connection_ && !connection_->told) fail("it stopped");
}

std::string World::describe() const {
  return join(size(), size() == 1 ? " process" : " processes", ", over ", options_.interface,
              ", meeting at ", meeting_place(place_));
}

void World::require_no_failure() const {
  auto& store = *connection_->store;
  if (!store.has(kFailure)) return;
  connection_->told = true;
  const auto reason = store.get(kFailure);
  store.add("told", 1);
  if (is_first())  // the store ends with it
    wait_until([&] { return store.add("told", 0) >= store.add("arrived", 0); }, kToTell);
  throw std::runtime_error(reason);
}

void World::join_others() {
  auto& store = *connection_->store;
  const auto refuse = [&](const std::string& reason) {
    store.set(kFailure, reason);
    require_no_failure();
  };
  store.add("arrived", 1);
  if (store.add(join("join/", rank()), 1) > 1)
    refuse(join("rank ", rank(), " is taken by two processes; expected ranks 0 to ", size() - 1,
                ", each once"));
  store.set(join("size/", rank()), std::to_string(size()));
  int missing = 0;
  const auto all_joined = [&] {
    require_no_failure();
    if (!is_first()) return store.has("joined");
    while (missing < size() && store.has(join("size/", missing))) {
      const auto theirs = store.get(join("size/", missing));
      if (theirs != std::to_string(size()))
        refuse(join("rank ", missing, " has WORLD_SIZE ", theirs, ", rank 0 has ", size(),
                    "; start all with the same"));
      ++missing;
    }
    return missing == size();
  };
  if (!wait_until(all_joined, Seconds(options_.start_timeout)))
    refuse(is_first() ? join("rank ", missing, " has not joined within ",
                             number_text(options_.start_timeout), " s; expected ", size(),
                             " processes with RANK 0 to ", size() - 1)
                      : join("rank ", rank(), " has waited for the others for ",
                             number_text(options_.start_timeout), " s"));
  if (is_first()) store.set("joined", "");
}

// An exchange fails at once when another process closes its connection, and late when one does not
// take part. In the first case the monitor learns which one it is, and ends this process.
template <typename Work>
void World::exchange(const Work& work) {
  auto& c = *connection_;
  c.store->set(join("exchanges/", rank()), std::to_string(++c.exchanges));
  try {
    work();
  } catch (const std::exception& error) {
    c.monitor->wait_for_verdict();
    std::string behind;
    for (int other = 0; other < size(); ++other) {
      const auto key = join("exchanges/", other);
      if (!c.store->has(key) || std::stoll(c.store->get(key)) < c.exchanges)
        behind += join(behind.empty() ? "rank " : ", rank ", other);
    }
    const std::string text = error.what();
    throw std::runtime_error(
        behind.empty() ? join("an exchange between ranks failed: ", text.substr(0, text.find('\n')))
                       : join(behind, " did not take part in an exchange within ",
                              number_text(options_.exchange_timeout),
                              " s (--exchange-timeout). --resume auto continues"));
  }
}

void World::sum(at::Tensor values) {
  if (!connection_) return;
  exchange([&] { connection_->group->sum(values); });
}

// Each rank halves the range that it adds up with a partner whose number differs in one bit, from
// the lowest bit on. So the sum of an element is that of a binary tree. The way back shares the
// sums. Sums of two are the same in either order.
void World::tree_sum_of(at::Tensor& values, at::Tensor& received) {
  struct Range {
    int64_t begin, count;
  };
  const auto part = [&](Range range) { return values.narrow(0, range.begin, range.count); };
  std::vector<Range> mine = {{0, values.numel()}}, theirs = {{}};
  for (int bit = 1; bit < size(); bit *= 2) {
    const auto [begin, count] = mine.back();
    const Range lower{begin, count / 2}, upper{begin + count / 2, count - count / 2};
    const bool high = (rank() & bit) != 0;
    mine.push_back(high ? upper : lower);
    theirs.push_back(high ? lower : upper);
    auto sum = part(mine.back()), other = received.narrow(0, 0, mine.back().count);
    connection_->group->exchange(part(theirs.back()), other, rank() ^ bit);
    sum.add_(other);
  }
  for (int bit = size() / 2; bit >= 1; bit /= 2) {
    connection_->group->exchange(part(mine.back()), part(theirs.back()), rank() ^ bit);
    mine.pop_back();
    theirs.pop_back();
  }
}

void World::tree_sum(const std::vector<at::Tensor>& tensors) {
  if (!connection_) return;
  const bool is_tree = (size() & (size() - 1)) == 0;
  const Pieces pieces(tensors);
  const int64_t bucket = std::min(pieces.count(), kBucket);
  auto buffer = large_empty({bucket}, at::kFloat), received = large_empty({bucket}, at::kFloat);
  exchange([&] {
    for (int64_t begin = 0; begin < pieces.count(); begin += bucket) {
      auto values = buffer.narrow(0, 0, std::min(bucket, pieces.count() - begin));
      pieces.visit(begin, values,
                   [](const at::Tensor& piece, at::Tensor part) { part.copy_(piece); });
      if (is_tree)
        tree_sum_of(values, received);
      else
        connection_->group->sum(values);
      pieces.visit(begin, values,
                   [](at::Tensor piece, const at::Tensor& part) { piece.copy_(part); });
    }
  });
}

void World::require_same(const SettingTexts& facts) {
  if (!connection_) return;
  auto& store = *connection_->store;
  const auto prefix = join("check ", connection_->checks++, "/");
  const auto wait_for = [&](const std::string& key, int whose) {
    ensure(wait_until(
               [&] {
                 require_no_failure();
                 return store.has(key);
               },
               Seconds(options_.exchange_timeout)),
           "rank ", whose, " was not ready within ", number_text(options_.exchange_timeout),
           " s (--exchange-timeout)");
    return store.get(key);
  };
  store.set(prefix + std::to_string(rank()), text_of(facts));
  if (is_first()) {
    std::string verdict;
    for (int other = 1; other < size() && verdict.empty(); ++other)
      verdict = difference(facts, facts_in(wait_for(prefix + std::to_string(other), other)), other);
    store.set(prefix + "verdict", verdict);
  }
  const auto verdict = wait_for(prefix + "verdict", 0);
  if (verdict.empty()) return;
  leave();  // every rank knows
  throw std::invalid_argument(verdict);
}

void World::fail(const std::string& reason) {
  if (!connection_ || connection_->told) return;
  connection_->told = true;
  if (connection_->monitor)
    connection_->monitor->report(join("rank ", rank(), " failed: ", reason));
}

void World::leave() {
  if (!connection_ || connection_->told) return;
  auto& c = *connection_;
  auto nothing = at::zeros({1}, at::kFloat);
  exchange([&] { c.group->sum(nothing); });
  c.monitor.reset();  // nobody is watched any more
  c.told = true;
  if (c.store->add("left", 1) == size() || !is_first()) return;
  // The store ends with rank 0.
  wait_until([&] { return c.store->add("left", 0) == size(); }, Seconds(options_.rank_timeout));
}

}  // namespace translution
