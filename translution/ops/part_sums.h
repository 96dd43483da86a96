#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "translution/core/pairs.h"
#include "translution/ops/group.h"

namespace translution {

/// Throws unless a call whose pairs have a part of the slots names a group, and no other call does.
void check_group(const char* op, const std::string& pairs, const std::string& group);

/// The sums of a call over its group, for implementations of `attention` and `convolution`. Without
/// a group, the calls below do nothing.
class PartSums {
 public:
  /// Throws c10::Error if the group is unknown.
  PartSums(const std::string& group, std::shared_ptr<const Pairs> pairs);

  bool needed() const { return sum_ != nullptr; }
  /// Replaces contiguous tensors by their sums.
  void add(const std::vector<at::Tensor>& tensors) const;
  /// The same for numbers of the pairs, contiguous [Nq,N,…]. Leaves closed pairs as they are.
  void add_pairs(const at::Tensor& numbers) const;
  /// The same for the tensors that are defined; makes them contiguous.
  void add_defined(const std::vector<at::Tensor*>& tensors) const;

 private:
  const GroupSum sum_;
  const std::shared_ptr<const Pairs> pairs_;
};

}  // namespace translution
