#include "translution/data/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/data/small_vocabulary.h"
#include "translution/io/atomic_file.h"

namespace translution {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Each test has a temporary directory.
class Tokens : public testing::Test {
 protected:
  Tokens() { std::filesystem::create_directories(directory); }
  ~Tokens() override { std::filesystem::remove_all(directory); }

  void write(const std::string& name, const std::string& bytes) const {
    write_file_atomically(directory + "/" + name, bytes);
  }
  // Writes 0, 1, 2, … modulo 256 as byte tokens.
  void write_counting(int count) const {
    std::vector<int32_t> tokens(count);
    for (int i = 0; i < count; ++i) tokens[i] = i % 256;
    write_token_directory(directory, Tokenizer::bytes(), "", tokens, {7, 8, 9});
  }
  TokenDataset train(int64_t length, bool shifted = false, uint64_t seed = 0) const {
    return {directory, TokenSplit::train, {length, seed, shifted}};
  }
  template <typename Call>
  std::string refusal(Call call) const {
    try {
      call();
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      EXPECT_THAT(text, StartsWith(directory + "/"));
      return text.substr(std::min(text.size(), directory.size() + 1));
    }
    return "accepted";
  }

  const std::string directory = testing::TempDir() + "tokens_test." + std::to_string(getpid());
};

std::vector<int64_t> values(const torch::Tensor& tensor) {
  const auto flat = tensor.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

// -------------------------------------------------------------------------------- windows

TEST_F(Tokens, TargetsAreTheInputsShiftedByOneToken) {
  write_counting(11);
  const auto data = train(3);
  EXPECT_EQ(data.size(), 3);  // the last target is token 9
  const Batch batch = data.load({0, 0, {2, 0}});
  EXPECT_THAT(batch.input.sizes(), ElementsAre(2, 3));
  EXPECT_THAT(values(batch.input), ElementsAre(6, 7, 8, 0, 1, 2));
  EXPECT_THAT(values(batch.target), ElementsAre(7, 8, 9, 1, 2, 3));
  EXPECT_EQ(batch.input.scalar_type(), torch::kLong);
}

TEST_F(Tokens, EveryTokenOfAWindowHasATarget) {
  const std::pair<int, int64_t> sizes[] = {{6, 1}, {10, 1}, {11, 2}, {15, 2}, {16, 3}};
  for (const auto& [tokens, windows] : sizes) {
    write_counting(tokens);
    EXPECT_EQ(train(5).size(), windows) << tokens;
  }
}

TEST_F(Tokens, TrainingWindowsAreShiftedInEachEpoch) {
  write_counting(64);
  const auto data = train(5, /*shifted=*/true);
  EXPECT_EQ(data.size(), 11);  // 12 would fit without a shift
  std::set<int64_t> shifts;
  for (int64_t epoch = 0; epoch < 300; ++epoch) {
    const int64_t shift = data.shift(epoch);
    const auto last = values(data.load({epoch, 0, {10}}).target);
    EXPECT_EQ(last.back(), shift + 55);
    shifts.insert(shift);
  }
  EXPECT_EQ(shifts.size(), 9u);  // 0 to 8: the last target is then the last token
  EXPECT_EQ(*shifts.rbegin(), 8);
}

TEST_F(Tokens, TheShiftDependsOnlyOnSeedAndEpoch) {
  write_counting(250);
  const auto one = train(4, true, 1), same = train(4, true, 1), other = train(4, true, 2);
  int different = 0;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    EXPECT_TRUE(one.load({epoch, 0, {3}}).input.equal(same.load({epoch, 5, {3}}).input));
    different += one.shift(epoch) != other.shift(epoch);
  }
  EXPECT_GT(different, 10);
  EXPECT_EQ(train(4).shift(17), 0);
}

TEST_F(Tokens, OneWindowIsEnough) {
  write_counting(6);
  const auto data = train(5, /*shifted=*/true);
  EXPECT_EQ(data.size(), 1);
  EXPECT_EQ(data.shift(3), 0);
}

TEST_F(Tokens, SamplesOutOfRangeAreRefused) {
  write_counting(11);
  EXPECT_THROW(train(3).load({0, 0, {3}}), std::invalid_argument);
  EXPECT_THROW(train(3).load({0, 0, {-1}}), std::invalid_argument);
  EXPECT_THROW(train(0), std::invalid_argument);
}

// ------------------------------------------------------------------------------ directories

TEST_F(Tokens, TheDirectoryStoresTheTokenizersName) {
  write_counting(9);
  EXPECT_EQ(read_tokenizer(directory).name(), "bytes");
  const TokenMeta meta = train(3).meta();
  EXPECT_EQ(meta.summary(), "bytes, 256 tokens");
  EXPECT_EQ(meta.train, 9);
  EXPECT_EQ(meta.val, 3);
}

TEST_F(Tokens, TheDirectoryStoresTheTokenizersFiles) {
  const std::string bpe = directory + "/bpe", out = directory + "/a/b";
  std::filesystem::create_directories(bpe);
  const auto files = small_vocabulary({{"a", "b"}});
  write("bpe/encoder.json", files.encoder);
  write("bpe/vocab.bpe", files.merges);
  const auto tokenizer = Tokenizer::gpt2(bpe);
  write_token_directory(out, tokenizer, bpe, tokenizer.encode("abab"), {256});
  std::filesystem::remove_all(bpe);
  EXPECT_EQ(read_file(out + "/train.bin"), std::string("\0\1\0\1", 4));
  const auto again = read_tokenizer(out);
  EXPECT_EQ(again.name(), "gpt2");
  EXPECT_EQ(again.decode({256, 255 - 'c'}), "abc");
  write("a/b/encoder.json", small_vocabulary({}).encoder);
  write("a/b/vocab.bpe", "#version\n");
  EXPECT_EQ(refusal([&] { read_tokenizer(out); }),
            "a/b/encoder.json: has 257 tokens, but meta.json says 258");
}

TEST_F(Tokens, Gpt2IsAssumedWithoutMeta) {
  write("train.bin", std::string("\x50\xc4\0\0\1\0", 6));  // 50256 is GPT-2's last token
  EXPECT_EQ(values(train(2).load({0, 0, {0}}).input), (std::vector<int64_t>{50256, 0}));
  EXPECT_EQ(train(2).meta().summary(), "gpt2, 50257 tokens (assumed: there is no meta.json)");
}

// ----------------------------------------------------------------------------- damaged files

TEST_F(Tokens, TokensOutsideTheVocabularyAreReportedWithFileAndPosition) {
  write("train.bin", std::string("\0\0\1\0\x51\xc4\1\0\1\0", 10));
  const auto data = train(2);
  EXPECT_EQ(refusal([&] {
              data.load({0, 0, {1}});
            }),
            "train.bin: token 50257 at position 2, expected less than the vocabulary of 50257");
}

TEST_F(Tokens, TruncatedFilesAreRefused) {
  write_counting(9);
  const std::string whole = read_file(directory + "/train.bin");
  for (size_t size = 0; size < whole.size(); ++size) {
    write("train.bin", whole.substr(0, size));
    const std::string expected =
        size % 2 == 1
            ? "train.bin: has " + std::to_string(size) +
                  " bytes, expected two per token; is it truncated?"
            : "train.bin: has " + std::to_string(size / 2) +
                  " tokens, but meta.json says 9; write both again with `translution data text`";
    EXPECT_EQ(refusal([&] { train(2); }), expected);
  }
}

TEST_F(Tokens, TooFewTokensForAWindowAreRefused) {
  write_counting(9);
  EXPECT_EQ(refusal([&] { train(9); }),
            "train.bin: has 9 tokens, expected more than the window length of 9");
  EXPECT_EQ(train(8).size(), 1);
  std::filesystem::remove(directory + "/train.bin");
  EXPECT_EQ(
      refusal([&] { train(8); }),
      "train.bin: not found; write it with `translution data text FILE --out " + directory + "`");
}

std::string refusal_of_meta(const std::string& json) {
  try {
    parse_token_meta(json, "meta.json");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

constexpr const char* kMeta =
    R"({"tokenizer": "gpt2", "vocabulary": 50257, "train_tokens": 5, "val_tokens": 6})";

TEST(TokenMeta, IsRefusedIfTruncatedAtAnyByte) {
  const std::string whole = kMeta;
  EXPECT_EQ(refusal_of_meta(whole), "accepted");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(refusal_of_meta(whole.substr(0, size)), StartsWith("meta.json: ")) << size;
}

TEST(TokenMeta, WithAnyBitFlippedIsRefusedOrWithinLimits) {
  const std::string whole = kMeta;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    if (refusal_of_meta(damaged) != "accepted") continue;
    const auto meta = parse_token_meta(damaged, "meta.json");
    EXPECT_LE(meta.vocabulary, 65536);
    EXPECT_EQ(meta.tokenizer, "gpt2");
  }
}

TEST(TokenMeta, IsRefusedWithTheReason) {
  const auto with = [](const std::string& part, const std::string& other) {
    std::string text = kMeta;
    return refusal_of_meta(text.replace(text.find(part), part.size(), other));
  };
  const std::string vocabulary = "meta.json: expected 'vocabulary' as a whole number from 256 to ";
  EXPECT_EQ(with("50257", "65537"), vocabulary + "65536, got 65537");
  EXPECT_EQ(with("50257", "-1"), vocabulary + "65536, got -1");
  EXPECT_EQ(with("50257", "1e3"), vocabulary + "65536, got 1000.0");
  EXPECT_EQ(with("50257", "\"50257\""), vocabulary + "65536, got \"50257\"");
  EXPECT_EQ(with("50257", "[[]]"), vocabulary + "65536, got array");
  EXPECT_EQ(with("\"gpt2\"", "\"bytes\""), vocabulary + "256, got 50257");
  EXPECT_EQ(with("\"gpt2\"", "2"),
            "meta.json: expected 'tokenizer' as \"bytes\" or \"gpt2\", got 2");
  EXPECT_EQ(with("val_tokens", "tokens"),
            "meta.json: expected 'val_tokens' as a whole number from 0 to 4611686018427387904, got "
            "nothing");
  EXPECT_EQ(refusal_of_meta("[]"),
            "meta.json: is not a JSON object; write it again with `translution data text`");
}

TEST(TokenMeta, WithDeepNestingIsRefusedWithoutDeepRecursion) {
  const std::string depth = std::string(30000, '[') + std::string(30000, ']');
  EXPECT_THAT(refusal_of_meta("{\"tokenizer\":" + depth + "}"), HasSubstr("got array"));
  EXPECT_THAT(refusal_of_meta(std::string(1 << 16, '[')), HasSubstr("is not a JSON object"));
  EXPECT_THAT(refusal_of_meta(std::string((1 << 16) + 1, ' ')),
              HasSubstr("expected at most 65536"));
}

TEST(TokenView, NeverReadsOutsideItsBytes) {
  const TokenView tokens(std::string_view("\1\0\2\0", 4), "x.bin", 256);
  int64_t out[3] = {};
  tokens.copy(2, 0, out);
  tokens.copy(0, 2, out);
  EXPECT_THAT(out, ElementsAre(1, 2, 0));
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const std::pair<int64_t, int64_t> calls[] = {{0, 3},  {1, 2},  {2, 1},     {3, 0},
                                               {-1, 1}, {0, -1}, {1, kHuge}, {kHuge, 1}};
  for (const auto& [first, count] : calls)
    EXPECT_THROW(tokens.copy(first, count, out), std::invalid_argument) << first << " " << count;
}

}  // namespace
}  // namespace translution
