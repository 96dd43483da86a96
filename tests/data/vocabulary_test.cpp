#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/small_vocabulary.h"
#include "translution/data/tokenizer.h"

namespace translution {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

VocabularyFiles files() { return small_vocabulary({{"a", "b"}, {" ", "ab"}, {"\xc3", "\xa9"}}); }

// The message about the files; any other type of exception fails the test.
std::string refusal(const VocabularyFiles& given) {
  try {
    given.parse();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_of_encoder(const std::string& encoder) {
  return refusal({encoder, files().merges});
}

std::string refusal_of_merges(const std::string& merges) {
  return refusal({files().encoder, merges});
}

std::string replaced(std::string text, const std::string& part, const std::string& other) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), other);
}

TEST(Vocabulary, ReadsTokensBytesAndMerges) {
  const auto vocabulary = files().parse();
  EXPECT_EQ(vocabulary.tokens.size(), 256u + 3 + 1);
  EXPECT_EQ(vocabulary.tokens[257], " ab");
  EXPECT_EQ(vocabulary.tokens[258], "\xc3\xa9");
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(vocabulary.byte_tokens[byte], 255 - byte);
    EXPECT_EQ(vocabulary.tokens[255 - byte], std::string(1, static_cast<char>(byte)));
  }
  const auto& merge = vocabulary.merges.at(BpeVocabulary::pair_key(255 - ' ', 256));
  EXPECT_EQ(merge.rank, 1);
  EXPECT_EQ(merge.token, 257);
}

TEST(DamagedEncoder, IsRefusedIfTruncatedAtAnyByte) {
  const std::string whole = files().encoder;
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(refusal_of_encoder(whole.substr(0, size)), StartsWith("encoder.json: ")) << size;
}

TEST(DamagedMerges, AreRefusedIfTruncatedAtAnyByte) {
  const std::string whole = files().merges;
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(refusal_of_merges(whole.substr(0, size)), StartsWith("vocab.bpe")) << size;
}

// A file with a flipped bit may still be a valid vocabulary; then it must work.
TEST(DamagedFiles, WithAnyBitFlippedAreRefusedOrStillTokenize) {
  const VocabularyFiles whole = files();
  const std::string text = "abab ab \xc3\xa9 \xff<|endoftext|>";
  for (std::string VocabularyFiles::*member : {&VocabularyFiles::encoder, &VocabularyFiles::merges})
    for (size_t bit = 0; bit < 8 * (whole.*member).size(); ++bit) {
      VocabularyFiles damaged = whole;
      (damaged.*member)[bit / 8] ^= static_cast<char>(1 << bit % 8);
      if (refusal(damaged) != "accepted") continue;
      const auto tokenizer = Tokenizer::gpt2(damaged.parse());
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << bit;
    }
}

TEST(DamagedEncoder, IsRefusedWithTheReason) {
  const std::string expected =
      "encoder.json: expected an object of tokens and their numbers from 0 to "
      "65535, got ";
  const std::string whole = files().encoder;
  const auto with_last = [&](const std::string& value) {
    return refusal_of_encoder(replaced(whole, ":259}", ":" + value + "}"));
  };
  EXPECT_EQ(with_last("-1"), expected + "-1 after 259 tokens");
  EXPECT_EQ(with_last("1.5"), expected + "1.5 after 259 tokens");
  EXPECT_EQ(with_last("65536"), expected + "65536 after 259 tokens");
  EXPECT_EQ(with_last("\"259\""), expected + "text after 259 tokens");
  EXPECT_EQ(with_last("null"), expected + "null after 259 tokens");
  EXPECT_EQ(with_last("true"), expected + "a boolean after 259 tokens");
  EXPECT_EQ(with_last("[259]"), expected + "a list after 259 tokens");
  EXPECT_EQ(with_last("{}"), expected + "an object after 259 tokens");
  EXPECT_EQ(with_last("260"),
            "encoder.json: expected numbers from 0 to 259 for 260 tokens, got 260");
  EXPECT_EQ(with_last("258"), "encoder.json: two tokens have number 258");
  EXPECT_EQ(with_last("18446744073709551616"), expected + "18446744073709551616 after 259 tokens");
  EXPECT_EQ(refusal_of_encoder("7"), expected + "7 after 0 tokens");
  EXPECT_EQ(refusal_of_encoder("{}"), "encoder.json: has no token for byte 0");
  EXPECT_EQ(refusal_of_encoder(replaced(whole, "<|endoftext|>", "ab")),
            "encoder.json: the token with number 259 appears twice");
  for (const char* token : {"", " ", "\u2581", "\u0144", "\u00ad"})
    EXPECT_EQ(refusal_of_encoder(replaced(whole, "<|endoftext|>", token)),
              "encoder.json: token 260 of the file is empty or has a character that encodes no "
              "byte");
  EXPECT_THAT(refusal_of_encoder(replaced(whole, "\"A\":", "\"AA\":")),
              HasSubstr("has no token for byte 65"));
}

TEST(DamagedEncoder, AllocatesNoMemoryForNesting) {
  EXPECT_THAT(refusal_of_encoder(std::string(1 << 20, '[')), HasSubstr("got a list"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THAT(refusal_of_encoder(objects), HasSubstr("got an object"));
}

TEST(DamagedMerges, AreRefusedWithTheReason) {
  const std::string whole = files().merges;
  EXPECT_EQ(refusal_of_merges(""), "vocab.bpe: expected a first line with #version");
  EXPECT_EQ(refusal_of_merges("a b\n"), "vocab.bpe: expected a first line with #version");
  EXPECT_EQ(refusal_of_merges("#version"),
            "vocab.bpe: does not end with a newline; is it truncated?");
  EXPECT_EQ(refusal_of_merges("#version\na b\n"),
            "vocab.bpe: no merge produces token 257 of encoder.json; is the file truncated, or "
            "from another vocabulary?");
  EXPECT_EQ(refusal_of_merges(whole + "a b\n"), "vocab.bpe:5: this merge appears twice");
  EXPECT_EQ(refusal_of_merges(whole + "a c\n"),
            "vocab.bpe:5: has a token that is not in encoder.json");
  for (const char* line :
       {"", " ", "ab", "a ", " b", "a b c", "a  b", "a b\r", "a \xc3", "a \xc2!"})
    EXPECT_EQ(refusal_of_merges(whole + line + "\n"),
              "vocab.bpe:5: expected two tokens with a space between them")
        << line;
}

TEST(MissingFiles, AreReportedWithTheScriptThatFetchesThem) {
  try {
    Tokenizer::gpt2(std::string("/nowhere"));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "/nowhere/encoder.json: not found; fetch it with scripts/fetch-gpt2-bpe /nowhere");
  }
}

}  // namespace
}  // namespace translution
