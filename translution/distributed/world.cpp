#include "translution/distributed/world.h"

#include <net/if.h>

#include <functional>
#include <future>
#include <numeric>
#include <thread>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/distributed/connection.h"
#include "translution/distributed/monitor.h"
#include "translution/distributed/port.h"
#include "translution/distributed/rank_group.h"

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

}  // namespace

struct World::Connection {
  std::unique_ptr<Store> store;
  std::unique_ptr<Monitor> monitor;
  int64_t checks = 0;  // calls of require_same
  bool told = false;   // the others know that this process stops
};

World::World() { groups_.push_back(std::make_unique<RankGroup>()); }

World::World(const WorldPlace& place, const WorldOptions& options)
    : place_(place), options_(options) {
  if (place.size == 1) {
    groups_.push_back(std::make_unique<RankGroup>());
    return;
  }
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
  std::vector<int> everyone(place.size);
  std::iota(everyone.begin(), everyone.end(), 0);
  open(everyone);
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

RankGroup& World::open(const std::vector<int>& ranks) {
  auto& c = *connection_;
  groups_.push_back(std::make_unique<RankGroup>(
      RankGroup::Links{*c.store, *c.monitor,
                       join("group ", groups_.size(), " of rank ", ranks.front()), rank(), ranks},
      options_));
  return *groups_.back();
}

RankGroup& World::all() { return *groups_.front(); }

RankGroup& World::group(const std::vector<int>& ranks) {
  if (static_cast<int>(ranks.size()) == size()) {
    groups_.push_back(nullptr);  // its number
    return all();
  }
  if (ranks.size() > 1) return open(ranks);
  groups_.push_back(std::make_unique<RankGroup>());
  return *groups_.back();
}

int64_t World::bytes_sent() const {
  int64_t bytes = 0;
  for (const auto& group : groups_)
    if (group) bytes += group->bytes_sent();
  return bytes;
}

void World::sum(at::Tensor values) { all().sum(std::move(values)); }

void World::tree_sum(const std::vector<at::Tensor>& tensors) { all().tree_sum(tensors); }

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
  all().wait();
  c.monitor.reset();  // nobody is watched any more
  c.told = true;
  if (c.store->add("left", 1) == size() || !is_first()) return;
  // The store ends with rank 0.
  wait_until([&] { return c.store->add("left", 0) == size(); }, Seconds(options_.rank_timeout));
}

}  // namespace translution
