#pragma once

#include "translution/data/dataset.h"
#include "translution/data/token_files.h"
#include "translution/io/file.h"

namespace translution {

enum class TokenSplit { train, val };

struct TokenWindows {
  int64_t length = 0;  ///< tokens of a window
  uint64_t seed = 0;
  bool shifted = false;  ///< for training: the windows begin elsewhere in each epoch
};

/// Windows of a text, one behind the other; the target of each token is the one that follows it.
///   input[s] = token[b + s * length …],  target[s] = the same one further
/// b is 0, or drawn from {seed, epoch} for shifted windows. Those are one less where there is more
/// than one, so that b has at least `length` values, and all epochs have the same number.
class TokenDataset : public Dataset {
 public:
  TokenDataset(const std::string& directory, TokenSplit split, const TokenWindows& windows);

  int64_t size() const override { return size_; }
  /// Refuses tokens outside of the vocabulary, with the file and the position.
  Batch load(const BatchPlan& plan) const override;

  const TokenMeta& meta() const { return meta_; }
  /// Where the first window of the epoch begins.
  int64_t shift(int64_t epoch) const;

 private:
  const TokenWindows windows_;
  const TokenMeta meta_;
  const MappedFile file_;
  const TokenView tokens_;
  int64_t size_;
};

}  // namespace translution
