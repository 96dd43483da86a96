#pragma once

#include <string>
#include <utility>
#include <vector>

#include "translution/data/bpe_vocabulary.h"

// Small vocabularies in memory: the 256 bytes and a few merges.
namespace translution {

using Merges = std::vector<std::pair<std::string, std::string>>;

/// The contents of encoder.json and vocab.bpe.
struct VocabularyFiles {
  std::string encoder, merges;

  BpeVocabulary parse() const {
    return parse_bpe_vocabulary(encoder, merges, "encoder.json", "vocab.bpe");
  }
};

/// The bytes in the characters that GPT-2's files use for them.
std::string as_characters(const std::string& bytes);

/// Bytes 0 to 255 are tokens 255 to 0. The results of the merges follow, then <|endoftext|>.
VocabularyFiles small_vocabulary(const Merges& merges);

}  // namespace translution
