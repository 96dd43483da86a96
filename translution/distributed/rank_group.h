#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/distributed/options.h"

namespace translution {

class Group;
class Monitor;
class Store;

/// Some ranks of a world, which exchange tensors with each other. A group of one rank returns at
/// once from every function.
///
/// All ranks of the group must call these functions in the same order. If one is lost, the others
/// end as World describes.
class RankGroup {
 public:
  struct Links {
    Store& store;
    Monitor& monitor;
    std::string name;        ///< of this group, the same on its ranks
    int rank;                ///< of this process, in the world
    std::vector<int> ranks;  ///< of the group, in the world
  };
  RankGroup();  ///< of one rank
  /// Connects the ranks. Store and monitor must outlive the group.
  RankGroup(const Links& links, const WorldOptions& options);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return rank_; }  ///< of this process, in the group
  int size() const { return size_; }

  /// Replaces the values by their sum over all ranks; the same bits on each.
  void sum(at::Tensor values);
  /// The same for a list of float tensors, added as a binary tree: (0 + 1) + (2 + 3), … if the size
  /// is a power of two. Sends 2 (size - 1) / size of their bytes from each rank.
  void tree_sum(const std::vector<at::Tensor>& tensors);
  static constexpr int64_t kBucket = 4 << 20;  ///< floats that tree_sum sends together, from the
                                               ///< first one on
  /// Returns when all ranks have called it.
  void wait();
  /// The text of the first rank.
  std::string text_of_first(const std::string& text);

  /// Bytes of tensors that this process has sent.
  int64_t bytes_sent() const { return sent_; }

 private:
  template <typename Work>
  void exchange(const Work& work);
  void sum_by_gloo(at::Tensor& values);
  void sum_as_tree(at::Tensor& values, at::Tensor& received);
  void swap(at::Tensor sent, at::Tensor received, int partner);

  const std::optional<Links> links_;
  const double timeout_ = 0;  // seconds
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Group> group_;                            // none in a group of one
  const std::shared_ptr<std::atomic<int64_t>> exchanges_ =  // begun; the monitor publishes it
      std::make_shared<std::atomic<int64_t>>(0);
  int64_t sent_ = 0;  // bytes
};

}  // namespace translution
