#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/support/temp_dir.h"
#include "translution/train/checkpoint.h"

namespace translution::testing {

/// Content that is different for every step.
inline CheckpointContent content_of(int64_t step) {
  const auto value = static_cast<double>(step);
  return {{{"blocks.0.weight", torch::full({3, 5}, value)},
           {"head.bias", torch::full({7}, value, torch::kDouble)}},
          {{"first.0", torch::full({3, 5}, -value)}, {"steps", torch::tensor(step)}},
          {{"epoch", step}, {"loss", 0.1 * value}, {"seed", 18446744073709551615u}}};
}

inline void expect_same_tensors(const NamedTensors& got, const NamedTensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(got.count(name), 1u) << name;
    EXPECT_TRUE(torch::equal(got.at(name), tensor)) << name;
  }
}

inline void expect_content_of(int64_t step, const Checkpoint& checkpoint) {
  const auto expected = content_of(step);
  EXPECT_EQ(checkpoint.step, step);
  expect_same_tensors(checkpoint.content.model, expected.model);
  expect_same_tensors(checkpoint.content.optimizer, expected.optimizer);
  EXPECT_EQ(checkpoint.content.state, expected.state);
}

/// The bytes of every file below the directory, by path.
inline std::map<std::string, std::string> snapshot(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) files[entry.path()] = get_bytes(entry.path());
  return files;
}

}  // namespace translution::testing
