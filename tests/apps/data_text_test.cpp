#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/apps/program.h"
#include "tests/data/small_vocabulary.h"
#include "translution/data/token_files.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"

namespace translution {
namespace {

using testing::HasSubstr;

// A fixture with a temporary directory.
class DataText : public testing::Test {
 protected:
  DataText() { std::filesystem::create_directories(directory); }
  ~DataText() override { std::filesystem::remove_all(directory); }

  std::string write(const std::string& name, const std::string& bytes) const {
    write_file_atomically(directory + "/" + name, bytes);
    return directory + "/" + name;
  }
  // The decoded text of out/train.bin or out/val.bin.
  std::string text_of(const std::string& name) const {
    const std::string out = directory + "/out", bytes = read_file(out + "/" + name);
    const TokenView tokens(bytes, name, 65536);
    std::vector<int64_t> numbers(tokens.size());
    tokens.copy(0, tokens.size(), numbers.data());
    return read_tokenizer(out).decode({numbers.begin(), numbers.end()});
  }

  const std::string directory = testing::TempDir() + "data_text_test." + std::to_string(getpid());
  const std::string out = " --out " + directory + "/out ";
};

TEST_F(DataText, ConcatenatesTheFilesAndSplitsAtALine) {
  const auto one = write("one.txt", "first\nsecond\n"), two = write("two.txt", "third\nlast\n");
  const std::string summary = output_of("data text " + one + " " + two + out + "--val-share 0.25");
  EXPECT_EQ(text_of("train.bin"), "first\nsecond\nthird\n");
  EXPECT_EQ(text_of("val.bin"), "last\n");
  EXPECT_THAT(summary, HasSubstr(directory + "/out: 2 files, tokenizer bytes (256 tokens), "));
  EXPECT_THAT(summary, HasSubstr("  train.bin     19      19             1.00\n"));
}

TEST_F(DataText, SplitsBeforeTheLastLineIfTheMarkIsInIt) {
  output_of("data text " + write("a.txt", "x\na long line") + out);
  EXPECT_EQ(text_of("train.bin"), "x\n");
  EXPECT_EQ(text_of("val.bin"), "a long line");
}

TEST_F(DataText, SplitsASingleLineBetweenCharacters) {
  output_of("data text " + write("a.txt", "ab\u20ac\u20ac") + out + "--val-share 0.5");
  EXPECT_EQ(text_of("train.bin"), "ab\u20ac");
  EXPECT_EQ(text_of("val.bin"), "\u20ac");
}

TEST_F(DataText, UsesTheBytePairsOfBpe) {
  const auto files = small_vocabulary({{"a", "b"}});
  write("encoder.json", files.encoder);
  write("vocab.bpe", files.merges);
  const auto text = write("a.txt", "abab\nab\xff\n");
  output_of("data text " + text + out + "--val-share 0.4 --bpe " + directory);
  EXPECT_EQ(read_token_meta(directory + "/out").train, 3);
  EXPECT_EQ(text_of("train.bin"), "abab\n");
  EXPECT_EQ(text_of("val.bin"), "ab\xff\n");
}

TEST_F(DataText, ReportsUnreadableAndUnwritablePathsInOneLine) {
  const auto expect_failure = [](const std::string& call, const std::string& message) {
    const auto outcome = run(call);
    EXPECT_EQ(outcome.code, 1) << call;
    EXPECT_EQ(outcome.err, "translution: " + message + "\n");
  };
  const auto text = write("a.txt", "a\nb\n");
  expect_failure("data text nowhere" + out, "nowhere: cannot be opened: No such file or directory");
  expect_failure("data text " + text + out + "--bpe nowhere",
                 "nowhere/encoder.json: not found; fetch it with scripts/fetch-gpt2-bpe nowhere");
  expect_failure("data text " + text + " --out " + text + "/out",
                 text + "/out: cannot be created: Not a directory");
  EXPECT_FALSE(std::filesystem::exists(directory + "/out"));
}

TEST_F(DataText, RefusesTextsThatCannotBeSplit) {
  for (const std::string bytes : {"", "a"}) {
    const auto outcome = run("data text " + write("a.txt", bytes) + out);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("too short to be split"));
  }
}

TEST(DataHelp, HasExamplesAndTheRequiredOptionInItsUsage) {
  EXPECT_THAT(output_of("data --help"), HasSubstr("Examples:\n  translution data text"));
  const std::string help = output_of("data text --help");
  EXPECT_THAT(help, HasSubstr("Usage: translution data text FILE... --out DIR [OPTIONS]\n"));
  EXPECT_THAT(help, HasSubstr("scripts/fetch-gpt2-bpe gpt2\n"));
}

const WrongCall kWrongCalls[] = {
    {"data txt", "unknown command 'txt'; did you mean 'text'?"},
    {"data text --out x", "FILE is missing; see translution data text --help"},
    {"data text a", "--out DIR is missing; see translution data text --help"},
    {"data text a --oot x", "unknown option --oot; did you mean --out?"},
    {"data text a --out x --out y", "--out is given more than once"},
    {"data text a --out x --tokenizer gpt", "unknown tokenizer 'gpt'; did you mean 'gpt2'?"},
    {"data text a --out x --tokenizer gpt2",
     "--tokenizer gpt2 needs --bpe DIR with encoder.json and vocab.bpe; scripts/fetch-gpt2-bpe DIR "
     "gets them"},
    {"data text a --out x --tokenizer bytes --bpe y",
     "--tokenizer bytes and --bpe do not go together"},
    {"data text a --out x --val-share 1",
     "--val-share: expected a number between 0 and 1, got '1'"},
    {"data text a --out x --val-share nan",
     "--val-share: expected a number between 0 and 1, got 'nan'"},
};

TEST(DataWrongCalls, GetOneLineAndCodeTwo) {
  for (const auto& call : kWrongCalls) expect_refused(call);
}

}  // namespace
}  // namespace translution
