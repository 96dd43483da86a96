// GPT-2's vocabulary against what gpt-3-encoder makes of the same texts (bpe_cases.js). The cases
// are those of gpt2_cases.json, or of the file that TRANSLUTION_BPE_CASES names.

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "translution/core/random.h"
#include "translution/data/tokenizer.h"
#include "translution/data/words.h"
#include "translution/io/file.h"

namespace translution {
namespace {

using nlohmann::json;

constexpr double kUnicode = 17;  // what words.cpp knows

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

const json& cases() {
  static const json all = json::parse(
      read_file(setting("TRANSLUTION_BPE_CASES", TRANSLUTION_TESTS "/data/gpt2_cases.json")));
  return all;
}

// The vocabulary is fetched once into the build directory.
class Gpt2 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string directory = setting("TRANSLUTION_GPT2_BPE", TRANSLUTION_BUILD "/gpt2-bpe");
    const std::string fetch = TRANSLUTION_SCRIPTS "/fetch-gpt2-bpe '" + directory + "' >&2";
    if (std::system(fetch.c_str()) == 0) tokenizer = Tokenizer::gpt2(directory);
  }
  void SetUp() override {
    if (!tokenizer) GTEST_SKIP() << "GPT-2's vocabulary cannot be fetched";
  }

  static std::optional<Tokenizer> tokenizer;
};

std::optional<Tokenizer> Gpt2::tokenizer;

TEST_F(Gpt2, MakesTheTokensOfGpt3EncoderAndTheSameTextAgain) {
  ASSERT_GE(cases()["cases"].size(), 400u);
  for (const auto& pair : cases()["cases"]) {
    const auto text = pair[0].get<std::string>();
    const auto tokens = tokenizer->encode(text);
    EXPECT_EQ(tokens, pair[1].get<std::vector<int32_t>>()) << pair[0];
    EXPECT_EQ(tokenizer->decode(tokens), text) << pair[0];
  }
}

TEST_F(Gpt2, MakesTheSameTokensOfAllCasesWhereTheyFollowEachOther) {
  std::string text;
  std::vector<int32_t> tokens;
  for (const auto& pair : cases()["cases"]) {
    text += pair[0].get<std::string>() + "\xff";  // a byte of its own parts them
    for (const int32_t token : pair[1]) tokens.push_back(token);
    tokens.push_back(tokenizer->encode("\xff").front());
  }
  EXPECT_EQ(tokenizer->encode(text), tokens);
}

TEST_F(Gpt2, HasTheVocabularyOfGpt2) {
  EXPECT_EQ(tokenizer->vocabulary(), 50257);
  EXPECT_EQ(tokenizer->decode({50256}), "<|endoftext|>");
  EXPECT_EQ(tokenizer->decode({15496, 995}), "Hello world");
}

TEST_F(Gpt2, GivesBackAnyBytes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random({seed});
    std::string text;
    for (int64_t i = random.below(500); i > 0; --i) text += static_cast<char>(random.below(256));
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << "seed " << seed;
  }
}

// ----------------------------------------------------------------- all characters of Unicode

std::string as_utf8(uint32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

// L, N, S or O: that of the words which goes on with the character.
std::string classes_by_words(const WordSplitter& splitter, uint32_t code) {
  const std::pair<char, char> begins[] = {{'L', 'a'}, {'N', '1'}, {'S', '\n'}, {'O', '!'}};
  std::string found;
  for (const auto& [kind, begin] : begins) {
    int words = 0;
    splitter.split(begin + as_utf8(code), [&](std::string_view) { ++words; });
    if (words == 1) found += kind;
  }
  return found;
}

TEST(UnicodeClasses, AreThoseOfNodeForEveryCharacter) {
  if (cases()["unicode"] > kUnicode) GTEST_SKIP() << "this node knows a newer Unicode";
  const WordSplitter splitter;
  std::istringstream runs(cases()["classes"].get<std::string>() + " 110000X");
  int64_t wrong = 0;
  uint32_t code = 0;
  char kind = 'X';
  for (std::string run; runs >> run; kind = run.back())
    for (const uint32_t end = std::stoul(run, nullptr, 16); code < end; ++code)
      if (kind != 'X' && classes_by_words(splitter, code) != std::string(1, kind)) ++wrong;
  EXPECT_EQ(code, 0x110000u);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace translution
