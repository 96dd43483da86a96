#include "translution/data/words.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstring>
#include <string>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

// JavaScript's \s. PCRE2's \s includes U+0085 and U+180E and lacks U+FEFF.
constexpr const char* kSpaces =
    R"(\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff})";

// Additions of Unicode 15 to 17 to \p{L} and \p{N} of Unicode 14.
constexpr const char* kNewLetters =
    R"(\x{88f}\x{c5c}\x{cdc}\x{1c89}-\x{1c8a}\x{a7cb}-\x{a7cf}\x{a7d2}\x{a7d4}\x{a7da}-\x{a7dc})"
    R"(\x{a7f1}\x{105c0}-\x{105f3}\x{10940}-\x{10959}\x{10d4a}-\x{10d65}\x{10d6f}-\x{10d85})"
    R"(\x{10ec2}-\x{10ec7}\x{1123f}-\x{11240}\x{11380}-\x{11389}\x{1138b}\x{1138e})"
    R"(\x{11390}-\x{113b5}\x{113b7}\x{113d1}\x{113d3}\x{11bc0}-\x{11be0}\x{11db0}-\x{11ddb})"
    R"(\x{11f02}\x{11f04}-\x{11f10}\x{11f12}-\x{11f33}\x{1342f}\x{13441}-\x{13446})"
    R"(\x{13460}-\x{143fa}\x{16100}-\x{1611d}\x{16d40}-\x{16d6c}\x{16ea0}-\x{16eb8})"
    R"(\x{16ebb}-\x{16ed3}\x{16ff2}-\x{16ff3}\x{187f8}-\x{187ff}\x{18cff}\x{18d09}-\x{18d1e})"
    R"(\x{18d80}-\x{18df2}\x{1b132}\x{1b155}\x{1df25}-\x{1df2a}\x{1e030}-\x{1e06d})"
    R"(\x{1e4d0}-\x{1e4eb}\x{1e5d0}-\x{1e5ed}\x{1e5f0}\x{1e6c0}-\x{1e6de}\x{1e6e0}-\x{1e6e2})"
    R"(\x{1e6e4}-\x{1e6e5}\x{1e6e7}-\x{1e6ed}\x{1e6f0}-\x{1e6f4}\x{1e6fe}-\x{1e6ff})"
    R"(\x{2b739}-\x{2b73f}\x{2cea2}-\x{2cead}\x{2ebf0}-\x{2ee5d}\x{31350}-\x{33479})";
constexpr const char* kNewNumbers =
    R"(\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{11de0}-\x{11de9})"
    R"(\x{11f50}-\x{11f59}\x{16130}-\x{16139}\x{16d70}-\x{16d79}\x{16ff4}-\x{16ff6})"
    R"(\x{1ccf0}-\x{1ccf9}\x{1d2c0}-\x{1d2d3}\x{1e4f0}-\x{1e4f9}\x{1e5f1}-\x{1e5fa})";

// The alternative for A-Z is redundant but faster: most words are ASCII letters, and without a
// lookup in Unicode's tables they take 2/3 of the time.
std::string pattern_text() {
  const std::string spaces = kSpaces;
  const std::string letters = std::string(R"(\p{L})") + kNewLetters;
  const std::string numbers = std::string(R"(\p{N})") + kNewNumbers;
  return join("'s|'t|'re|'ve|'m|'ll|'d", R"(| ?[A-Za-z]++(?![^\x00-\x7f]))",  //
              "| ?[", letters, "]+| ?[", numbers, "]+",                       //
              "| ?[^", spaces, letters, numbers, "]+",                        //
              "|[", spaces, "]+(?![^", spaces, "])|[", spaces, "]+");
}

bool is_tail(unsigned char byte) { return byte >> 6 == 2; }

// Bytes of the first character, which is not ASCII; 0 if it is malformed.
size_t character_size(const unsigned char* text, size_t left) {
  const unsigned char first = text[0];
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || size > left) return 0;
  for (size_t i = 1; i < size; ++i)
    if (!is_tail(text[i])) return 0;
  const unsigned char second = text[1];
  const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool beyond = first == 0xf4 && second >= 0x90;  // U+10FFFF is the last
  return too_long || surrogate || beyond ? 0 : size;
}

}  // namespace

size_t well_formed(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (text.size() - at >= sizeof eight) std::memcpy(&eight, bytes + at, sizeof eight);
    if (text.size() - at >= sizeof eight && (eight & 0x8080808080808080u) == 0) {
      at += sizeof eight;
      continue;
    }
    const size_t size = bytes[at] < 0x80 ? 1 : character_size(bytes + at, text.size() - at);
    if (size == 0) break;
    at += size;
  }
  return at;
}

// -------------------------------------------------------------------------------- pattern

struct WordSplitter::Pattern {
  Pattern() {
    const std::string text = pattern_text();
    int error = 0;
    PCRE2_SIZE where = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         PCRE2_UTF | PCRE2_ANCHORED, &error, &where, nullptr);
    ensure(code != nullptr, "PCRE2 cannot compile the word pattern: error ", error, " at ", where);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT, matching is only slower
  }
  ~Pattern() { pcre2_code_free(code); }

  pcre2_code* code;
};

WordSplitter::WordSplitter() : pattern_(std::make_unique<Pattern>()) {}

WordSplitter::~WordSplitter() = default;

// --------------------------------------------------------------------------------- cursor

struct WordSplitter::Cursor::Match {
  Match() : data(pcre2_match_data_create(1, nullptr)) {
    ensure(data != nullptr, "PCRE2 cannot allocate memory for a match");
  }
  ~Match() { pcre2_match_data_free(data); }

  pcre2_match_data* data;
};

WordSplitter::Cursor::Cursor(const WordSplitter& splitter, std::string_view text)
    : pattern_(*splitter.pattern_),
      match_(std::make_unique<Match>()),
      text_(text),
      valid_(well_formed(text)) {}

WordSplitter::Cursor::~Cursor() = default;

bool WordSplitter::Cursor::next() {
  if (at_ == text_.size()) return false;
  const size_t end = at_ < valid_ ? end_of_word() : at_ + 1;
  word_ = text_.substr(at_, end - at_);
  if (at_ >= valid_) valid_ = end + well_formed(text_.substr(end));
  at_ = end;
  return true;
}

size_t WordSplitter::Cursor::end_of_word() const {
  const int result = pcre2_match(pattern_.code, reinterpret_cast<PCRE2_SPTR>(text_.data()), valid_,
                                 at_, PCRE2_NO_UTF_CHECK, match_->data, nullptr);
  ensure(result > 0, "PCRE2 failed with error ", result, " at byte ", at_, " of the text");
  return pcre2_get_ovector_pointer(match_->data)[1];
}

}  // namespace translution
