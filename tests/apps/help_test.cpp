// Help, manual page and shell completion.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "tests/apps/program.h"
#include "tests/support/process.h"
#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Help, HasAnExampleForEveryCommand) {
  EXPECT_THAT(output_of("--help"), HasSubstr("Examples:\n  translution list\n"));
  EXPECT_THAT(output_of("list --help"), HasSubstr("Examples:\n  translution list\n"));
  const std::string info = output_of("info -h");
  EXPECT_THAT(info, HasSubstr("Examples:\n  translution info --model vit-a/12"));
  EXPECT_THAT(info, HasSubstr("\nPosition:\n  --method NAME "));
}

TEST(Help, GroupsTheCommands) {
  const std::string help = output_of("--help");
  const auto lines = lines_with(help, "");
  const auto commands_of = [&](const std::string& group) {
    std::vector<std::string> names;
    for (auto line = std::find(lines.begin(), lines.end(), group + ":"); line != lines.end();
         ++line)
      if (line->empty())
        break;
      else if (line->front() == ' ')
        names.push_back(line->substr(2, line->find(' ', 2) - 2));
    return names;
  };
  EXPECT_THAT(commands_of("Train and use models"),
              ElementsAre("train", "launch", "eval", "predict", "generate", "report", "serve"));
  EXPECT_THAT(commands_of("Study models and reproduce the paper"),
              ElementsAre("list", "info", "plan", "bench", "reproduce", "results", "configs"));
  EXPECT_THAT(commands_of("Tools"), ElementsAre("data", "convert", "completion", "manual"));
}

TEST(Help, ShowsRequiredArgumentsAndOptionsInTheUsage) {
  const std::pair<const char*, const char*> usages[] = {
      {"train", "--out RUN [OPTIONS]"},
      {"eval", "RUN [OPTIONS]"},
      {"predict", "RUN FILE... [OPTIONS]"},
      {"serve", "RUN... [OPTIONS]"},
      {"list", "[OPTIONS]"},
      {"info", "(--model NAME | --paper-table TABLE) [OPTIONS]"},
      {"bench", "COMMAND [OPTIONS]"},
      {"bench op", "[OPTIONS]"},
      {"bench step", "--model NAME [OPTIONS]"},
      {"bench generate", "--model NAME [OPTIONS]"},
      {"reproduce", "TABLE (--out DIR | --dry-run) [OPTIONS]"},
      {"results", "DIR FILE... [OPTIONS]"},
      {"data text", "FILE... --out DIR [OPTIONS]"},
      {"convert", "IN OUT (--from FORMAT | --to FORMAT) [OPTIONS]"},
  };
  for (const auto& [command, usage] : usages)
    EXPECT_THAT(output_of(join(command, " --help")),
                HasSubstr(join("\n\nUsage: translution ", command, " ", usage, "\n\n")));
}

TEST(Help, FitsIntoHundredColumns) {
  for (const char* command : {"", "train", "reproduce", "bench op", "bench generate", "convert"})
    for (const auto& line : lines_with(output_of(join(command, " --help")), ""))
      EXPECT_LE(line.size(), 100u) << command << ": " << line;
}

TEST(Help, NamesTheDefaultsOfTheCommand) {
  const auto default_in = [](const std::string& command, const std::string& option) {
    const std::string help = output_of(command + " --help");
    const size_t begin = help.find("\n  " + option + " ");
    // Up to the next option, or to the blank line before the next group.
    const size_t end = std::min(help.find("\n  -", begin + 1), help.find("\n\n", begin + 1));
    const auto text = help.substr(begin, end - begin);
    const auto bracket = text.substr(text.rfind('('), text.rfind(')') + 1 - text.rfind('('));
    return std::regex_replace(bracket, std::regex("\\s+"), " ");  // it may be wrapped
  };
  EXPECT_EQ(default_in("train", "--batch"), "(256)");
  EXPECT_EQ(default_in("eval", "--batch"), "(256)");
  EXPECT_EQ(default_in("bench op", "--batch"), "(64)");
  EXPECT_EQ(default_in("bench step", "--batch"), "(64)");
  EXPECT_EQ(default_in("info", "--batch"), "(1)");
  EXPECT_EQ(default_in("train", "--model"), "(vit-a/12)");
  EXPECT_EQ(default_in("train", "--image-size"), "(the data's)");
  EXPECT_EQ(default_in("info", "--image-size"), "(224x224)");
  EXPECT_EQ(default_in("train", "--canvas"), "(84x84)");
  EXPECT_EQ(default_in("eval", "--canvas"), "(the run's)");
  EXPECT_EQ(default_in("reproduce", "--lr"), "(the budget's)");
}

TEST(Help, SaysInWhichDirectionTemperatureIsSafe) {
  EXPECT_THAT(output_of("generate --help"), HasSubstr("lower is safer, higher more varied; 0:"));
}

TEST(Help, GoesToStandardErrorWithoutACommand) {
  const auto outcome = run("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("Usage: translution COMMAND [OPTIONS]\n"));
}

// The completions of bash for the last of these words.
std::string completed(const std::string& words) {
  int code = 0;
  const auto offered = testing::output_of_command(
      "bash -c 'source <(" TRANSLUTION_PROGRAM " completion bash); COMP_WORDS=(" + words +
          "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _translution; echo ${COMPREPLY[@]}'",
      &code);
  EXPECT_EQ(code, 0) << words;
  return offered;
}

TEST(Completion, OffersCommandsOptionsAndValues) {
  EXPECT_EQ(completed("translution ev"), "eval\n");
  EXPECT_EQ(completed("translution bench st"), "step\n");
  EXPECT_EQ(completed("translution train --eval-o"), "--eval-on\n");
  EXPECT_EQ(completed("translution eval alpha --js"), "--json\n");
  EXPECT_EQ(completed("translution data text book.txt --tok"), "--tokenizer\n");
  EXPECT_EQ(completed("translution train --method alpha"), "alpha_translution\n");
  EXPECT_EQ(completed("translution train --batch 8 --schedule co"), "cosine constant\n");
  EXPECT_EQ(completed("translution train --model gpt-l"), "gpt-large\n");
  EXPECT_EQ(completed("translution convert a b --from t"), "translution timm\n");
}

TEST(Completion, IsAScriptForZshToo) {
  const auto script = output_of("completion zsh");
  EXPECT_THAT(script, StartsWith("#compdef translution\n"));
  EXPECT_THAT(script, HasSubstr("    *\" --schedule \") choices=\"cosine constant\" ;;\n"));
}

TEST(Manual, HasAllOfTheHelp) {
  const auto page = output_of("manual");
  EXPECT_THAT(page, HasSubstr("\n.SH SYNOPSIS\ntranslution COMMAND [OPTIONS]\n"));
  EXPECT_THAT(page, HasSubstr("\n.PP\n\\fITools:\\fR\n.TP\n\\fBdata\\fR\nPrepare "));
  EXPECT_THAT(page, HasSubstr("\n.SS \"translution data text FILE... \\-\\-out DIR [OPTIONS]\"\n"
                              "Tokenize plain text for a GPT\n.PP\n\\fIArguments:\\fR\n"
                              ".TP\n\\fBFILE\\fR\nplain text file\n"));
  // After a long name, the help has the description in the next line.
  EXPECT_THAT(page,
              HasSubstr("\n.TP\n\\fB\\-\\-sharing\\fR none|direction|logarithmic|window\nweight "));
  // Descriptions are not wrapped.
  EXPECT_THAT(page,
              HasSubstr("\ncontinue from the newest complete checkpoint of \\-\\-out, if there "
                        "is one (off)\n"));
  EXPECT_THAT(page, HasSubstr("\n  translution manual | man \\-l \\-\n.fi\n"));
}

TEST(Help, ListsArgumentsByThemselves) {
  const auto help = output_of("predict --help");
  EXPECT_THAT(
      help,
      HasSubstr(
          "Usage: translution predict RUN FILE... [OPTIONS]\n\nArguments:\n"
          "  RUN                             run directory, checkpoint or file of weights\n"));
}

}  // namespace
}  // namespace translution
