#pragma once

#include "translution/data/dataset.h"
#include "translution/data/token_files.h"
#include "translution/io/file.h"

namespace translution {

enum class TokenSplit { train, val };

struct TokenWindows {
  int64_t length = 0;  ///< tokens per window
  uint64_t seed = 0;
  bool shifted = false;  ///< for training: a random shift of all windows in each epoch
};

/// Consecutive windows of a text; the target of each token is the next token.
///   input[s] = token[b + s * length …],  target[s] = token[b + s * length + 1 …]
/// b is 0; for shifted windows it is drawn from {seed, epoch}. Shifted data has one window fewer
/// (unless there is only one): b then has at least `length` values, and all epochs have the same
/// size.
class TokenDataset : public Dataset {
 public:
  TokenDataset(const std::string& directory, TokenSplit split, const TokenWindows& windows);
  /// The built-in text, tokenised into bytes.
  static std::shared_ptr<const TokenDataset> built_in(TokenSplit split,
                                                      const TokenWindows& windows);

  int64_t size() const override { return size_; }
  /// Throws std::runtime_error with file and position for a token outside the vocabulary.
  Batch load(const BatchPlan& plan) const override;

  const TokenMeta& meta() const { return meta_; }
  /// The first token of the epoch's first window.
  int64_t shift(int64_t epoch) const;

 private:
  struct Text {
    std::shared_ptr<const void> owner;  // of `bytes`
    std::string_view bytes;
    std::string path;
    TokenMeta meta;
    std::optional<int64_t> expected;  // tokens according to meta.json
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
