// The two files of a BPE vocabulary and a text: three parts, separated by zero bytes. If the
// vocabulary is accepted, decoding the encoded text must give the text.

#include <cstdlib>
#include <stdexcept>

#include "translution/data/tokenizer.h"

using translution::Tokenizer;

namespace {

std::string_view next_part(std::string_view& input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view part = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto encoder = next_part(text), merges = next_part(text);
  try {
    const auto tokenizer = Tokenizer::gpt2(
        translution::parse_bpe_vocabulary(encoder, merges, "encoder.json", "vocab.bpe"));
    for (const auto part : {text, encoder, merges})
      if (tokenizer.decode(tokenizer.encode(part)) != part) std::abort();
  } catch (const std::runtime_error&) {
  }
  return 0;
}
