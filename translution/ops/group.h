#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// Replaces each tensor by its sum over the processes of a group. Every process calls it with
/// contiguous tensors of the same sizes and types in the same order, and gets the same bits.
using GroupSum = std::function<void(const std::vector<at::Tensor>& tensors)>;

/// A name in the registry of groups, which the destructor removes.
class TRANSLUTION_API GroupRegistration {
 public:
  GroupRegistration() = default;
  explicit GroupRegistration(std::string name) : name_(std::move(name)) {}
  GroupRegistration(GroupRegistration&& other) noexcept : name_(std::exchange(other.name_, {})) {}
  GroupRegistration& operator=(GroupRegistration&& other) noexcept {
    std::swap(name_, other.name_);
    return *this;
  }
  ~GroupRegistration();

 private:
  std::string name_;  // empty: removes nothing
};

/// Makes a group known to `attention` and `convolution`, which take its name as their argument
/// `group`. Throws if the name is empty or already in use.
[[nodiscard]] TRANSLUTION_API GroupRegistration register_group(std::string name, GroupSum sum);

/// The sum of a registered group. Throws c10::Error if the name is unknown.
TRANSLUTION_API GroupSum find_group(const std::string& name);

}  // namespace translution
