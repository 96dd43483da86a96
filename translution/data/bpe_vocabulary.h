#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// The vocabulary of GPT-2's byte-level BPE: the tokens, and which adjacent pairs merge.
struct BpeVocabulary {
  struct Merge {
    int32_t rank;   ///< lower ranks merge first
    int32_t token;  ///< the result
  };

  std::vector<std::string> tokens;             ///< the bytes of each token, by number
  std::array<int32_t, 256> byte_tokens{};      ///< the token of each single byte
  std::unordered_map<uint64_t, Merge> merges;  ///< by pair_key

  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
};

/// Parses the contents of `encoder.json` ({token: number}) and `vocab.bpe` (a version line, then
/// two tokens per line), in which 256 printable characters encode the bytes. Expects numbers 0 to
/// n-1 with n at most 65536, a token for each byte, and every other token either produced by a
/// merge or special: <…>. Throws std::runtime_error with a message that begins with the path.
TRANSLUTION_API BpeVocabulary parse_bpe_vocabulary(std::string_view encoder,
                                                   std::string_view merges,
                                                   const std::string& encoder_path,
                                                   const std::string& merges_path);

}  // namespace translution
