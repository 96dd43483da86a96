// Compares GPT-2's tokenizer with gpt-3-encoder on the same texts (bpe_cases.js). The cases come
// from gpt2_cases.json, or from the file that TRANSLUTION_BPE_CASES names.

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

constexpr double kUnicode = 17;  // version that words.cpp implements

std::string from_environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

const json& cases() {
  static const json all = json::parse(read_file(
      from_environment("TRANSLUTION_BPE_CASES", TRANSLUTION_TESTS "/data/gpt2_cases.json")));
  return all;
}

// The vocabulary is fetched once into the build directory.
class Gpt2 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string directory =
        from_environment("TRANSLUTION_GPT2_BPE", TRANSLUTION_BUILD "/gpt2-bpe");
    const std::string fetch = TRANSLUTION_SCRIPTS "/fetch-gpt2-bpe '" + directory + "' >&2";
    if (std::system(fetch.c_str()) == 0) tokenizer = Tokenizer::gpt2(directory);
  }
  void SetUp() override {
    if (!tokenizer) GTEST_SKIP() << "GPT-2's vocabulary cannot be fetched";
  }

  static std::optional<Tokenizer> tokenizer;
};

std::optional<Tokenizer> Gpt2::tokenizer;

TEST_F(Gpt2, AgreesWithGpt3EncoderAndDecodesToTheSameText) {
  ASSERT_GE(cases()["cases"].size(), 400u);
  for (const auto& pair : cases()["cases"]) {
    const auto text = pair[0].get<std::string>();
    const auto tokens = tokenizer->encode(text);
    EXPECT_EQ(tokens, pair[1].get<std::vector<int32_t>>()) << pair[0];
    EXPECT_EQ(tokenizer->decode(tokens), text) << pair[0];
  }
}

TEST_F(Gpt2, GivesTheSameTokensForTheConcatenatedCases) {
  std::string text;
  std::vector<int32_t> tokens;
  for (const auto& pair : cases()["cases"]) {
    text += pair[0].get<std::string>() + "\xff";  // an invalid byte separates the cases
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

TEST_F(Gpt2, RoundTripsAnyBytes) {
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

// The classes (L, N, S, O) whose words the character continues; exactly one is expected.
std::string classes_by_words(const WordSplitter& splitter, uint32_t code) {
  const std::pair<char, char> words_of_class[] = {{'L', 'a'}, {'N', '1'}, {'S', '\n'}, {'O', '!'}};
  std::string found;
  for (const auto& [kind, first] : words_of_class) {
    int words = 0;
    splitter.split(first + as_utf8(code), [&](std::string_view) { ++words; });
    if (words == 1) found += kind;
  }
  return found;
}

TEST(UnicodeClasses, AgreeWithNodeForEveryCharacter) {
  if (cases()["unicode"] > kUnicode) GTEST_SKIP() << "this node has a newer Unicode version";
  const WordSplitter splitter;
  std::istringstream ranges(cases()["classes"].get<std::string>() + " 110000X");
  int64_t wrong = 0;
  uint32_t code = 0;
  char kind = 'X';
  for (std::string range; ranges >> range; kind = range.back())
    for (const uint32_t end = std::stoul(range, nullptr, 16); code < end; ++code)
      if (kind != 'X' && classes_by_words(splitter, code) != std::string(1, kind)) ++wrong;
  EXPECT_EQ(code, 0x110000u);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace translution
