#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/tokenizer.h"

namespace translution {

/// A directory of tokens is nanoGPT's: `train.bin` and `val.bin`, 16 bits for each token, the lower
/// byte first. Ours also have `meta.json`, and the files of the tokenizer if it has any, so that
/// they are complete in themselves.
struct TRANSLUTION_API TokenMeta {
  std::string tokenizer = "gpt2";
  int64_t vocabulary = 50257;
  /// Tokens in the two files; absent where there is no meta.json, and the above is assumed.
  std::optional<int64_t> train, val;

  bool assumed() const { return !train; }
  /// "gpt2, 50257 tokens", and whether that is assumed.
  std::string summary() const;
};

/// Errors begin with the path.
TRANSLUTION_API TokenMeta parse_token_meta(std::string_view json, const std::string& path);
/// What meta.json of the directory says; where there is none, what nanoGPT's directories have.
TRANSLUTION_API TokenMeta read_token_meta(const std::string& directory);
/// The tokenizer that made the tokens.
TRANSLUTION_API Tokenizer read_tokenizer(const std::string& directory);

/// Makes the directory where it is missing and writes train.bin, val.bin and meta.json; also copies
/// the tokenizer's files from `bpe`, for gpt2. Each file is whole or the old one.
TRANSLUTION_API void write_token_directory(const std::string& directory, const Tokenizer& tokenizer,
                                           const std::string& bpe,
                                           const std::vector<int32_t>& train,
                                           const std::vector<int32_t>& val);

/// The bytes of a token file, seen as tokens; checks them when they are read.
class TRANSLUTION_API TokenView {
 public:
  /// `path` is for messages; the bytes have to stay.
  TokenView(std::string_view bytes, std::string path, int64_t vocabulary);

  int64_t size() const { return static_cast<int64_t>(bytes_.size() / 2); }
  const std::string& path() const { return path_; }
  /// Writes tokens first to first + count - 1.
  void copy(int64_t first, int64_t count, int64_t* out) const;

 private:
  std::string_view bytes_;
  std::string path_;
  int64_t vocabulary_;
};

}  // namespace translution
