#include "translution/data/bpe_vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxTokens = 65536;  // token files store 16 bits per token
constexpr uint64_t kMaxMerges = 4 * kMaxTokens;

// ------------------------------------------------------------------- characters for bytes

// Printable bytes are their own characters; the others are U+0100, U+0101, … in order.
std::array<int, 324> bytes_by_character() {
  std::array<int, 324> bytes{};
  bytes.fill(-1);
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    bytes[prints ? byte : next++] = byte;
  }
  return bytes;
}

// The bytes that the characters encode; nothing if a character encodes no byte.
std::optional<std::string> to_bytes(std::string_view text) {
  static const auto by_character = bytes_by_character();
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t character = static_cast<unsigned char>(text[i]);
    if (character >= 0x80) {  // expected: two bytes of UTF-8
      const size_t second = ++i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
      if (character < 0xc2 || character > 0xdf || second >> 6 != 2) return std::nullopt;
      character = (character & 0x1f) << 6 | (second & 0x3f);
    }
    if (character >= by_character.size() || by_character[character] < 0) return std::nullopt;
    bytes += static_cast<char>(by_character[character]);
  }
  return bytes;
}

// -------------------------------------------------------------------------- encoder.json

using Numbers = std::unordered_map<std::string, int32_t>;

// Accepts one flat object and throws at anything else, so the tokens bound the memory.
class EncoderReader : public Json::json_sax_t {
 public:
  explicit EncoderReader(const std::string& path) : path_(path) {}

  Numbers numbers;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t value) override { return refuse(value); }
  bool number_float(number_float_t, const string_t& text) override { return refuse(text); }
  bool string(string_t&) override { return refuse("text"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_array(std::size_t) override { return refuse("a list"); }
  bool end_array() override { return true; }
  bool end_object() override { return true; }

  bool start_object(std::size_t) override {
    if (inside_) return refuse("an object");
    return inside_ = true;
  }
  bool key(string_t& text) override {
    auto bytes = to_bytes(text);
    ensure(bytes && !bytes->empty(), path_, ": token ", numbers.size() + 1,
           " of the file is empty or has a character that encodes no byte");
    key_ = std::move(*bytes);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!inside_ || value >= kMaxTokens) return refuse(value);
    const bool inserted = numbers.emplace(std::move(key_), static_cast<int32_t>(value)).second;
    ensure(inserted, path_, ": the token with number ", value, " appears twice");
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    throw std::runtime_error(join(path_, ": is not JSON at byte ", position,
                                  "; expected an object of tokens and their numbers"));
  }

 private:
  template <typename What>
  bool refuse(const What& what) const {
    throw std::runtime_error(
        join(path_, ": expected an object of tokens and their numbers from 0 to ", kMaxTokens - 1,
             ", got ", what, " after ", numbers.size(), " tokens"));
  }

  const std::string& path_;
  std::string key_;
  bool inside_ = false;
};

std::vector<std::string> by_number(const Numbers& numbers, const std::string& path) {
  std::vector<std::string> tokens(numbers.size());
  for (const auto& [bytes, number] : numbers) {
    ensure(static_cast<size_t>(number) < tokens.size(), path, ": expected numbers from 0 to ",
           tokens.size() - 1, " for ", tokens.size(), " tokens, got ", number);
    ensure(tokens[number].empty(), path, ": two tokens have number ", number);
    tokens[number] = bytes;
  }
  return tokens;
}

// ------------------------------------------------------------------------------ vocab.bpe

int32_t number_of(const Numbers& numbers, const std::string& bytes, const std::string& where) {
  const auto found = numbers.find(bytes);
  ensure(found != numbers.end(), where, ": has a token that is not in encoder.json");
  return found->second;
}

void add_merge(std::string_view line, const Numbers& numbers, const std::string& where,
               BpeVocabulary& vocabulary) {
  const size_t space = std::min(line.find(' '), line.size());
  const auto left = to_bytes(line.substr(0, space));
  const auto right = to_bytes(line.substr(std::min(space + 1, line.size())));
  ensure(left && right && !left->empty() && !right->empty(), where,
         ": expected two tokens with a space between them");
  auto& merges = vocabulary.merges;
  const auto pair =
      BpeVocabulary::pair_key(number_of(numbers, *left, where), number_of(numbers, *right, where));
  const BpeVocabulary::Merge merge{static_cast<int32_t>(merges.size()),
                                   number_of(numbers, *left + *right, where)};
  ensure(merges.emplace(pair, merge).second, where, ": this merge appears twice");
}

void add_merges(std::string_view text, const Numbers& numbers, const std::string& path,
                BpeVocabulary& vocabulary) {
  ensure(text.substr(0, 8) == "#version", path, ": expected a first line with #version");
  ensure(text.back() == '\n', path, ": does not end with a newline; is it truncated?");
  int64_t number = 2;
  for (size_t begin = text.find('\n') + 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    add_merge(text.substr(begin, end - begin), numbers, join(path, ":", number), vocabulary);
    ensure(vocabulary.merges.size() <= kMaxMerges, path, ": expected at most ", kMaxMerges,
           " merges");
    begin = end + 1;
  }
}

// A token that no merge produces means a truncated file, or files of two vocabularies.
void check_all_produced(const BpeVocabulary& vocabulary, const std::string& path) {
  std::vector<bool> produced(vocabulary.tokens.size());
  for (const auto& [pair, merge] : vocabulary.merges) produced[merge.token] = true;
  for (size_t number = 0; number < produced.size(); ++number) {
    const std::string& token = vocabulary.tokens[number];
    const bool special = token.size() > 2 && token.front() == '<' && token.back() == '>';
    ensure(produced[number] || token.size() == 1 || special, path, ": no merge produces token ",
           number, " of encoder.json; is the file truncated, or from another vocabulary?");
  }
}

}  // namespace

BpeVocabulary parse_bpe_vocabulary(std::string_view encoder, std::string_view merges,
                                   const std::string& encoder_path,
                                   const std::string& merges_path) {
  EncoderReader reader(encoder_path);
  Json::sax_parse(encoder.begin(), encoder.end(), &reader);
  BpeVocabulary vocabulary;
  vocabulary.tokens = by_number(reader.numbers, encoder_path);
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = reader.numbers.find(std::string(1, static_cast<char>(byte)));
    ensure(found != reader.numbers.end(), encoder_path, ": has no token for byte ", byte);
    vocabulary.byte_tokens[byte] = found->second;
  }
  add_merges(merges, reader.numbers, merges_path, vocabulary);
  check_all_produced(vocabulary, merges_path);
  return vocabulary;
}

}  // namespace translution
