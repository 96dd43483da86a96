#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/tokenizer.h"

namespace translution {

/// Metadata of a token directory. The layout is nanoGPT's: `train.bin` and `val.bin`, 16 bits per
/// token, little-endian. Directories that we write also have `meta.json` and the tokenizer's files,
/// if it has any.
struct TRANSLUTION_API TokenMeta {
  std::string tokenizer = "gpt2";
  int64_t vocabulary = 50257;
  /// Number of tokens in train.bin and val.bin. Unset if there is no meta.json; then the defaults
  /// above are assumed.
  std::optional<int64_t> train, val;

  bool assumed() const { return !train; }
  /// "gpt2, 50257 tokens", with a note if that is assumed.
  std::string summary() const;
};

/// Throws std::runtime_error with a message that begins with the path.
TRANSLUTION_API TokenMeta parse_token_meta(std::string_view json, const std::string& path);
/// Reads meta.json of the directory; without it, returns the defaults (nanoGPT's).
TRANSLUTION_API TokenMeta read_token_meta(const std::string& directory);
/// The tokenizer that produced the tokens.
TRANSLUTION_API Tokenizer read_tokenizer(const std::string& directory);

/// Writes train.bin, val.bin and meta.json, and creates the directory if it is missing. For gpt2,
/// also copies the tokenizer's files from directory `bpe`. Each file is replaced atomically.
TRANSLUTION_API void write_token_directory(const std::string& directory, const Tokenizer& tokenizer,
                                           const std::string& bpe,
                                           const std::vector<int32_t>& train,
                                           const std::vector<int32_t>& val);

/// A view of a token file's bytes as tokens. copy() checks every token that it reads.
class TRANSLUTION_API TokenView {
 public:
  /// `path` is for messages; `bytes` must outlive the view.
  TokenView(std::string_view bytes, std::string path, int64_t vocabulary);

  int64_t size() const { return static_cast<int64_t>(bytes_.size() / 2); }
  const std::string& path() const { return path_; }
  /// Copies tokens first to first + count - 1 to `out`. Throws std::runtime_error for a token
  /// outside the vocabulary.
  void copy(int64_t first, int64_t count, int64_t* out) const;

 private:
  std::string_view bytes_;
  std::string path_;
  int64_t vocabulary_;
};

}  // namespace translution
