#include "tests/data/small_vocabulary.h"

#include <nlohmann/json.hpp>

namespace translution {
namespace {

std::string as_utf8(int code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

}  // namespace

std::string as_characters(const std::string& bytes) {
  std::string text;
  for (const char letter : bytes) {
    const int byte = static_cast<unsigned char>(letter);
    if (byte <= 0x20) text += as_utf8(0x100 + byte);
    if (byte > 0x20 && byte < 0x7f) text += letter;
    if (byte >= 0x7f && byte <= 0xa0) text += as_utf8(0x121 + byte - 0x7f);
    if (byte > 0xa0) text += as_utf8(byte == 0xad ? 0x143 : byte);
  }
  return text;
}

VocabularyFiles small_vocabulary(const Merges& merges) {
  nlohmann::ordered_json encoder;
  for (int byte = 0; byte < 256; ++byte)
    encoder[as_characters(std::string(1, static_cast<char>(byte)))] = 255 - byte;
  std::string lines = "#version: 0.2\n";
  for (const auto& [left, right] : merges) {
    const auto number = encoder.size();
    const std::string merged = as_characters(left + right);
    if (!encoder.contains(merged)) encoder[merged] = number;
    lines += as_characters(left) + " " + as_characters(right) + "\n";
  }
  const auto last = encoder.size();
  encoder["<|endoftext|>"] = last;
  return {encoder.dump(), lines};
}

}  // namespace translution
