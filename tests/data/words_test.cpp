#include "translution/data/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "translution/core/random.h"

namespace translution {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> words_of(std::string_view text) {
  static const WordSplitter splitter;
  std::vector<std::string> words;
  splitter.split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(Words, IncludeTheSpaceBeforeThem) {
  EXPECT_THAT(words_of(""), IsEmpty());
  EXPECT_THAT(words_of("one two  three"), ElementsAre("one", " two", " ", " three"));
  EXPECT_THAT(words_of(" x1 !?"), ElementsAre(" x", "1", " !?"));
  EXPECT_THAT(words_of("a\nb \n c"), ElementsAre("a", "\n", "b", " \n", " c"));
  EXPECT_THAT(words_of("a   "), ElementsAre("a", "   "));
}

TEST(Words, SplitOffLowerCaseContractionsOnly) {
  EXPECT_THAT(words_of("I'll it's IT'S"), ElementsAre("I", "'ll", " it", "'s", " IT", "'", "S"));
  EXPECT_THAT(words_of("'rex"), ElementsAre("'re", "x"));
}

TEST(Words, ConsistOfLettersOfAnyScript) {
  EXPECT_THAT(words_of("naïve été"), ElementsAre("naïve", " été"));
  EXPECT_THAT(words_of("abcй1٣x"), ElementsAre("abcй", "1٣", "x"));
  EXPECT_THAT(words_of("e\u0301a"), ElementsAre("e", "\u0301", "a"));
}

TEST(Words, UseTheSpacesOfJavaScript) {
  EXPECT_THAT(words_of("!\ufeff\u00a0"), ElementsAre("!", "\ufeff\u00a0"));
  EXPECT_THAT(words_of("!\u0085!"), ElementsAre("!\u0085!"));
  EXPECT_THAT(words_of("!\u180e!"), ElementsAre("!\u180e!"));
}

TEST(Words, UseLettersAndNumbersOfUnicode17) {
  EXPECT_THAT(words_of("a\U00031350\u088f"), ElementsAre("a\U00031350\u088f"));
  EXPECT_THAT(words_of("1\U00010d40a"), ElementsAre("1\U00010d40", "a"));
}

TEST(Words, EndBeforeBytesThatAreNotUtf8) {
  EXPECT_THAT(words_of("ab\xff"
                       "cd"),
              ElementsAre("ab", "\xff", "cd"));
  EXPECT_THAT(words_of("a  \xc3"), ElementsAre("a", "  ", "\xc3"));
  EXPECT_THAT(words_of("\xe2\x82 x"), ElementsAre("\xe2", "\x82", " x"));
}

struct Sequence {
  const char* bytes;
  size_t good;
};

TEST(WellFormed, StopsAtTheFirstByteOfABadSequence) {
  const Sequence sequences[] = {
      {"", 0},
      {"abcdefgh\x80", 8},
      {"abcdefghi", 9},
      {"\xc2\x80", 2},
      {"\xc1\xbf", 0},          // overlong encodings
      {"\xe0\x9f\xbf", 0},      //
      {"\xf0\x8f\xbf\xbf", 0},  //
      {"\xe0\xa0\x80", 3},
      {"\xed\x9f\xbf", 3},
      {"\xed\xa0\x80", 0},  // a surrogate
      {"\xee\x80\x80", 3},
      {"\xf4\x8f\xbf\xbf", 4},
      {"\xf4\x90\x80\x80", 0},  // beyond U+10FFFF
      {"\xf5\x80\x80\x80", 0},
      {"a\xe2\x82", 1},  // truncated
      {"a\xf0\x9f\x98", 1},
      {"\xe2\x28\xa1", 0},
      {"\xf0\x9f\x28\x80", 0},
  };
  for (const auto& [bytes, good] : sequences) EXPECT_EQ(well_formed(bytes), good) << bytes;
}

TEST(Words, ConcatenatedAreTheTextForAnyBytes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random({seed});
    std::string text;
    for (int64_t i = random.below(400); i > 0; --i)
      text += static_cast<char>(random.chance(0.5) ? random.below(256)
                                                   : "a 1\xc3\xa9\n"[random.below(6)]);
    std::string joined;
    for (const auto& word : words_of(text)) joined += word;
    EXPECT_EQ(joined, text) << "seed " << seed;
  }
}

TEST(Words, MayBeAMillionBytesLong) {
  for (const std::string part : {"a", "é", " ", "中", "7", "?", "\n"}) {
    std::string text;
    while (text.size() < 1000000) text += part;
    EXPECT_THAT(words_of(text), ElementsAre(text)) << part;
  }
}

}  // namespace
}  // namespace translution
