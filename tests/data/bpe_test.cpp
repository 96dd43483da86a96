#include "translution/data/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/data/small_vocabulary.h"
#include "translution/core/random.h"
#include "translution/data/tokenizer.h"

namespace translution {
namespace {

using testing::ElementsAre;

std::vector<std::string> pieces_of(const Merges& merges, const std::string& word) {
  const BpeVocabulary vocabulary = small_vocabulary(merges).parse();
  std::vector<int32_t> tokens;
  BpeMerger(vocabulary).append(word, tokens);
  std::vector<std::string> pieces;
  for (const int32_t token : tokens) pieces.push_back(vocabulary.tokens[token]);
  return pieces;
}

// The definition: while any adjacent pair merges, join all pairs of the lowest rank from left to
// right.
std::vector<std::string> plain_bpe(const Merges& merges, const std::string& word) {
  std::vector<std::string> pieces;
  for (const char letter : word) pieces.emplace_back(1, letter);
  const auto merges_at = [&](const Merges::value_type& merge, size_t i) {
    return i + 1 < pieces.size() && pieces[i] == merge.first && pieces[i + 1] == merge.second;
  };
  const auto occurs = [&](const Merges::value_type& merge) {
    for (size_t i = 0; i < pieces.size(); ++i)
      if (merges_at(merge, i)) return true;
    return false;
  };
  for (;;) {
    const auto lowest = std::find_if(merges.begin(), merges.end(), occurs);
    if (lowest == merges.end()) return pieces;
    std::vector<std::string> joined;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const bool both = merges_at(*lowest, i);
      joined.push_back(both ? pieces[i] + pieces[i + 1] : pieces[i]);
      i += both;
    }
    pieces = joined;
  }
}

// Random merges of tokens made of the letters a and b. Some tokens have two merges that produce
// them, and a merge can have a lower rank than the merges that produce its parts.
Merges random_merges(Random& random) {
  std::vector<std::string> tokens = {"a", "b"};
  Merges merges;
  for (int64_t i = 1 + random.below(12); i > 0; --i) {
    const Merges::value_type merge = {tokens[random.below(tokens.size())],
                                      tokens[random.below(tokens.size())]};
    if (std::find(merges.begin(), merges.end(), merge) != merges.end()) continue;
    merges.push_back(merge);
    tokens.push_back(merge.first + merge.second);
  }
  for (size_t i = merges.size(); i > 1 && random.chance(0.5); --i)
    std::swap(merges[i - 1], merges[random.below(i)]);
  return merges;
}

TEST(Bpe, JoinsTheLowestRankFirst) {
  EXPECT_THAT(pieces_of({{"b", "c"}, {"a", "b"}}, "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(pieces_of({{"a", "b"}, {"b", "c"}}, "abc"), ElementsAre("ab", "c"));
  EXPECT_THAT(pieces_of({{"a", "b"}, {"ab", "c"}}, "abcab"), ElementsAre("abc", "ab"));
}

TEST(Bpe, JoinsEqualPairsFromLeftToRight) {
  EXPECT_THAT(pieces_of({{"a", "a"}}, "aaaaa"), ElementsAre("aa", "aa", "a"));
  EXPECT_THAT(pieces_of({{"a", "a"}, {"aa", "a"}}, "aaaaa"), ElementsAre("aa", "aaa"));
}

TEST(Bpe, JoinsAllPairsOfARankBeforeNewPairsOfALowerOne) {
  EXPECT_THAT(pieces_of({{"b", "c"}, {"abc", "a"}, {"a", "bc"}}, "abcabc"),
              ElementsAre("abc", "abc"));
}

TEST(Bpe, AgreesWithItsDefinition) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random({seed});
    const Merges merges = random_merges(random);
    for (int repeat = 0; repeat < 5; ++repeat) {
      std::string word;
      for (int64_t i = 1 + random.below(40); i > 0; --i) word += "ab"[random.below(2)];
      EXPECT_EQ(pieces_of(merges, word), plain_bpe(merges, word)) << "seed " << seed << " " << word;
    }
  }
}

TEST(Bpe, TokenizesAWordOfAMillionBytes) {
  const auto tokenizer = Tokenizer::gpt2(small_vocabulary({{"a", "b"}, {"ab", "ab"}}).parse());
  std::string word;
  while (word.size() < 1000000) word += "abab";
  const auto start = std::chrono::steady_clock::now();
  const auto tokens = tokenizer.encode(word);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(tokens.size(), word.size() / 4);
  EXPECT_EQ(tokenizer.decode(tokens), word);
  EXPECT_LT(seconds.count(), 20);  // a quadratic algorithm would take minutes
}

// ------------------------------------------------------------------------------- tokenizers

TEST(ByteTokenizer, HasOneTokenPerByte) {
  const auto tokenizer = Tokenizer::bytes();
  EXPECT_EQ(tokenizer.name(), "bytes");
  EXPECT_EQ(tokenizer.vocabulary(), 256);
  const std::string text("a\0\xff\x80\n", 5);
  EXPECT_THAT(tokenizer.encode(text), ElementsAre('a', 0, 255, 128, '\n'));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(Tokenizers, RefuseTokensOutsideTheVocabulary) {
  const auto message = [](const Tokenizer& tokenizer, int32_t token) -> std::string {
    try {
      tokenizer.decode({0, token});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message(Tokenizer::bytes(), 256),
            "tokenizer bytes: expected tokens from 0 to 255, got 256");
  EXPECT_EQ(message(Tokenizer::gpt2(small_vocabulary({}).parse()), -1),
            "tokenizer gpt2: expected tokens from 0 to 256, got -1");
}

TEST(BpeTokenizer, MergesWithinWordsOnly) {
  const auto tokenizer =
      Tokenizer::gpt2(small_vocabulary({{" ", "a"}, {"a", " "}, {"!", "a"}}).parse());
  EXPECT_EQ(tokenizer.name(), "gpt2");
  EXPECT_EQ(tokenizer.vocabulary(), 256 + 3 + 1);
  EXPECT_THAT(tokenizer.encode("a a!a"), ElementsAre(255 - 'a', 256, 255 - '!', 255 - 'a'));
}

TEST(BpeTokenizer, PreservesBytesThatAreNotUtf8) {
  const auto tokenizer = Tokenizer::gpt2(small_vocabulary({{"\xe2", "\x82"}, {"a", "a"}}).parse());
  EXPECT_THAT(tokenizer.encode("aa\xe2\x82"), ElementsAre(257, 255 - 0xe2, 255 - 0x82));
  EXPECT_THAT(tokenizer.encode("\u20ac"), ElementsAre(256, 255 - 0xac));
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random({seed});
    std::string text;
    for (int64_t i = random.below(300); i > 0; --i)
      text += random.chance(0.3) ? 'a' : static_cast<char>(random.below(256));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << "seed " << seed;
  }
}

TEST(BpeTokenizer, NeverProducesSpecialTokensFromText) {
  const auto tokenizer = Tokenizer::gpt2(small_vocabulary({}).parse());
  EXPECT_EQ(tokenizer.encode("<|endoftext|>").size(), 13u);
  EXPECT_EQ(tokenizer.decode({256}), "<|endoftext|>");
}

TEST(BpeTokenizer, IsCorrectWithMoreWordsThanTheCacheHolds) {
  const auto tokenizer = Tokenizer::gpt2(small_vocabulary({{"a", "b"}, {"1", "2"}}).parse());
  std::string text;
  for (int word = 0; word < 200000; ++word) text += " " + std::to_string(word % 70000);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

}  // namespace
}  // namespace translution
