#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/settings.h"
#include "translution/distributed/options.h"
#include "translution/distributed/place.h"

namespace translution {

class RankGroup;

/// The processes that train together. With one process, every function returns at once.
///
/// All ranks must call group, sum, tree_sum, require_same and leave in the same order. If a rank
/// dies, hangs or loses its connection, the processes of all others end within `rank_timeout`, with
/// a message that names it.
class TRANSLUTION_API World {
 public:
  /// A single process.
  World();
  /// Meets the other processes. Throws if the place of one contradicts this one's, or if not all
  /// join in time.
  World(const WorldPlace& place, const WorldOptions& options);
  /// Without leave(), the others learn that this process has stopped.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  int local_size() const { return place_.local_size; }  ///< processes on this machine
  bool is_first() const { return rank() == 0; }
  /// "4 processes, over lo, meeting at 127.0.0.1:29500".
  std::string describe() const;

  /// The group of all ranks; sum and tree_sum are its functions (rank_group.h).
  RankGroup& all();
  void sum(at::Tensor values);
  void tree_sum(const std::vector<at::Tensor>& tensors);
  /// Opens the group of some ranks, this one among them. The ranks of one call are in one group
  /// each. The world owns it.
  RankGroup& group(const std::vector<int>& ranks);
  /// Bytes of tensors that this process has sent, in all groups.
  int64_t bytes_sent() const;

  /// Throws on every rank if a fact, such as an option, differs from that of rank 0. The message
  /// names the rank, the fact and both values. Returns when all ranks have called it.
  void require_same(const SettingTexts& facts);
  /// Tells the others why this process stops with an error; they stop with that message.
  void fail(const std::string& reason);
  /// Waits until all ranks have called it. Nothing may be exchanged afterwards.
  void leave();

 private:
  struct Connection;
  void join_others();
  void require_no_failure() const;
  RankGroup& open(const std::vector<int>& ranks);

  WorldPlace place_;
  WorldOptions options_;
  std::unique_ptr<Connection> connection_;          // none in a single process
  std::vector<std::unique_ptr<RankGroup>> groups_;  // the first one: of all ranks
};

}  // namespace translution
