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

/// The processes that train together. With one process, every function returns at once.
///
/// All ranks must call sum, tree_sum, require_same and leave in the same order. If a rank dies,
/// hangs or loses its connection, the processes of all others end within `rank_timeout`, with a
/// message that names it.
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

  /// Replaces the values by their sum over all ranks; the same bits on each.
  void sum(at::Tensor values);
  /// The same for a list of float tensors, added as a binary tree: (0 + 1) + (2 + 3), … if the size
  /// is a power of two. Sends 2 (size - 1) / size of their bytes from each rank.
  void tree_sum(const std::vector<at::Tensor>& tensors);
  static constexpr int64_t kBucket = 4 << 20;  ///< floats that tree_sum sends together, from the
                                               ///< first one on

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
  template <typename Work>
  void exchange(const Work& work);
  void tree_sum_of(at::Tensor& values, at::Tensor& received);

  WorldPlace place_;
  WorldOptions options_;
  std::unique_ptr<Connection> connection_;  // none in a single process
};

}  // namespace translution
