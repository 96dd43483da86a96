#include "tests/apps/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

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

std::string errors_path() { return testing::TempDir() + "cli_test." + std::to_string(getpid()); }

int next_number() {
  static int number = 0;
  return number++;
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

pid_t start(const std::string& command) {
  const pid_t id = fork();
  if (id != 0) return id;
  for (const int signal : {SIGINT, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

}  // namespace

std::string with_fault(const std::string& fault) {
  return "LD_PRELOAD=" TRANSLUTION_FAULTS " TRANSLUTION_WRITE_FAULT=" + fault;
}

Outcome run(const std::string& arguments, const std::string& before) {
  const std::string errors = errors_path();
  const std::string command = before + " " TRANSLUTION_PROGRAM " " + arguments + " 2>" + errors;
  FILE* pipe = popen(("exec env " + command).c_str(), "r");
  const std::string out = read_all(pipe);
  const int status = pclose(pipe);
  return {code_of(status), out, take_file(errors)};
}

Started::Started(const std::string& arguments, const std::string& before)
    : errors_(errors_path() + ".started." + std::to_string(next_number())),
      id_(start("exec env " + before + " " TRANSLUTION_PROGRAM " " + arguments + " >/dev/null 2>" +
                errors_)) {}

void Started::send(int signal) const { kill(id_, signal); }

Outcome Started::wait() const {
  int status = 0;
  waitpid(id_, &status, 0);
  return {code_of(status), "", take_file(errors_)};
}

Measured run_measured(const std::string& arguments, double seconds, const std::string& errors) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const pid_t id = start("exec " TRANSLUTION_PROGRAM " " + arguments + " >/dev/null 2>" + errors);
  Measured measured;
  int status = 0;
  rusage used{};
  while (wait4(id, &status, WNOHANG, &used) == 0) {
    if (!measured.hung && Clock::now() > end) measured.hung = kill(id, SIGKILL) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  measured.code = code_of(status);
  measured.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  measured.peak_kib = used.ru_maxrss;
  measured.err = take_file(errors);
  return measured;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.find(part) != std::string::npos) lines.push_back(line);
  return lines;
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
