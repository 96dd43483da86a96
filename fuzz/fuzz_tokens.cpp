// meta.json of a directory of tokens and a token file: two parts, separated by a zero byte. Tokens
// that are read must be within the vocabulary.

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "translution/data/token_files.h"

namespace {

void read_all(std::string_view bytes, int64_t vocabulary) {
  const translution::TokenView tokens(bytes, "train.bin", vocabulary);
  std::vector<int64_t> out(tokens.size());
  tokens.copy(0, tokens.size(), out.data());
  for (const int64_t token : out)
    if (token < 0 || token >= vocabulary) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const auto rest = input.substr(std::min(end + 1, input.size()));
  translution::TokenMeta meta;
  try {
    meta = translution::parse_token_meta(input.substr(0, end), "meta.json");
  } catch (const std::runtime_error&) {
  }
  try {
    read_all(rest, meta.vocabulary);
  } catch (const std::runtime_error&) {
  }
  return 0;
}
