#pragma once

#include <string>
#include <utility>
#include <vector>

#include "translution/data/bpe_vocabulary.h"

// Vocabularies without files: the 256 bytes, and a few merges.
namespace translution {

using Merges = std::vector<std::pair<std::string, std::string>>;

/// The contents of encoder.json and vocab.bpe.
struct VocabularyFiles {
  std::string encoder, merges;

  BpeVocabulary parse() const {
    return parse_bpe_vocabulary(encoder, merges, "encoder.json", "vocab.bpe");
  }
};

/// How GPT-2's files write bytes.
std::string as_characters(const std::string& bytes);

/// Bytes 0 to 255 are tokens 255 to 0; what merges make follows, and <|endoftext|>.
VocabularyFiles small_vocabulary(const Merges& merges);

}  // namespace translution
