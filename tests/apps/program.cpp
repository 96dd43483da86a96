#include "tests/apps/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/prestart.h"

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

int next_number() {
  static std::atomic<int> number = 0;
  return number++;
}

std::string errors_path() {
  return testing::TempDir() + "cli_test." + std::to_string(getpid()) + "." +
         std::to_string(next_number());
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

pid_t start(const std::string& command) {
  const pid_t id = fork();
  if (id != 0) return id;
  for (const int signal : {SIGINT, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

// The program in front of its `main`, as long as this process.
class Prestart {
 public:
  Prestart() {
    const std::string name = "translution-test-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, name.size());  // abstract: no file
    const auto size = static_cast<socklen_t>(sizeof address.sun_family + 1 + name.size());
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener, SOMAXCONN), 0);
    id_ = fork();
    if (id_ == 0) {
      setenv("LD_PRELOAD", TRANSLUTION_PRESTART, 1);
      setenv(prestart::kSocket, std::to_string(listener).c_str(), 1);
      execl(TRANSLUTION_PROGRAM, TRANSLUTION_PROGRAM, nullptr);
      _exit(127);
    }
    close(listener);
    setenv(prestart::kName, name.c_str(), 1);
  }
  ~Prestart() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  Prestart(const Prestart&) = delete;
  Prestart& operator=(const Prestart&) = delete;

 private:
  pid_t id_;
};

// What a shell calls: the program, or what asks the process in front of `main` to be it.
std::string program(const std::string& before) {
  if (before.find("LD_PRELOAD") != std::string::npos) return before + " " TRANSLUTION_PROGRAM " ";
  static const Prestart prestart;
  return before + " " TRANSLUTION_PRESTARTED " ";
}

}  // namespace

std::string with_fault(const std::string& fault) {
  return "LD_PRELOAD=" TRANSLUTION_FAULTS " TRANSLUTION_WRITE_FAULT=" + fault;
}

Outcome run(const std::string& arguments, const std::string& before) {
  const std::string errors = errors_path();
  const std::string command = program(before) + arguments + " 2>" + errors;
  FILE* pipe = popen(("exec env " + command).c_str(), "r");
  const std::string out = read_all(pipe);
  const int status = pclose(pipe);
  return {code_of(status), out, take_file(errors)};
}

Started::Started(const std::string& arguments, const std::string& before)
    : errors_(errors_path()),
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
  const std::string peak = errors + ".peak";
  const pid_t id = start("exec env " + (prestart::kPeak + ("=" + peak)) + " " + program("") +
                         arguments + " >/dev/null 2>" + errors);
  Measured measured;
  int status = 0;
  rusage used{};
  while (wait4(id, &status, WNOHANG, &used) == 0) {
    if (!measured.hung && Clock::now() > end) measured.hung = kill(id, SIGKILL) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  measured.code = code_of(status);
  measured.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const std::string of_child = take_file(peak);  // none, if the program was started by itself
  measured.peak_kib = of_child.empty() ? used.ru_maxrss : std::stoll(of_child);
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
