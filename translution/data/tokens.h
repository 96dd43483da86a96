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
  /// The text that the program brings along, byte by byte.
  static std::shared_ptr<const TokenDataset> built_in(TokenSplit split,
                                                      const TokenWindows& windows);

  int64_t size() const override { return size_; }
  /// Refuses tokens outside of the vocabulary, with the file and the position.
  Batch load(const BatchPlan& plan) const override;

  const TokenMeta& meta() const { return meta_; }
  /// Where the first window of the epoch begins.
  int64_t shift(int64_t epoch) const;

 private:
  struct Text {
    std::shared_ptr<const void> owner;  // of the bytes
    std::string_view bytes;
    std::string path;
    TokenMeta meta;
    std::optional<int64_t> expected;  // tokens
  };
  static Text open(const std::string& directory, TokenSplit split);
  TokenDataset(const Text& text, const TokenWindows& windows);

  const TokenWindows windows_;
  const TokenMeta meta_;
  const std::shared_ptr<const void> owner_;
  const TokenView tokens_;
  int64_t size_;
};

}  // namespace translution
