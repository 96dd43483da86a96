#include "tests/apps/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace translution {
namespace {

using testing::IsEmpty;

std::string read_all(FILE* pipe) {
  std::string text;
  for (int letter; (letter = std::fgetc(pipe)) != EOF;) text += static_cast<char>(letter);
  return text;
}

std::string take_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  return text.str();
}

}  // namespace

Outcome run(const std::string& arguments) {
  const std::string errors = testing::TempDir() + "cli_test." + std::to_string(getpid());
  const std::string command = TRANSLUTION_PROGRAM " " + arguments + " 2>" + errors;
  FILE* pipe = popen(command.c_str(), "r");
  const std::string out = read_all(pipe);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out, take_file(errors)};
}

std::string output_of(const std::string& arguments) {
  const auto outcome = run(arguments);
  EXPECT_EQ(outcome.code, 0) << arguments;
  EXPECT_THAT(outcome.err, IsEmpty()) << arguments;
  return outcome.out;
}

nlohmann::json json_of(const std::string& arguments) {
  return nlohmann::json::parse(output_of(arguments + " --json"));
}

void expect_refused(const WrongCall& call) {
  const auto outcome = run(call.arguments);
  EXPECT_EQ(outcome.code, 2) << call.arguments;
  EXPECT_EQ(outcome.err, std::string("translution: ") + call.message + "\n") << call.arguments;
  EXPECT_THAT(outcome.out, IsEmpty()) << call.arguments;
}

}  // namespace translution
