#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

// Runs the real program, at TRANSLUTION_PROGRAM, as a shell would.
namespace translution {

struct Outcome {
  int code;  // -1: ended by a signal
  std::string out, err;
};

/// `before` stands in front of the program, as in "TRANSLUTION_WRITE_FAULT=kill:7".
Outcome run(const std::string& arguments, const std::string& before = "");

/// The program while it runs.
class Started {
 public:
  explicit Started(const std::string& arguments);
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  void send(int signal) const;
  Outcome wait() const;  // once; `out` is not kept

 private:
  const std::string errors_;  // a file
  const pid_t id_;
};

/// What it prints; expects success and nothing on standard error.
std::string output_of(const std::string& arguments);
/// The same with --json, read.
nlohmann::json json_of(const std::string& arguments);

struct WrongCall {
  const char* arguments;
  const char* message;
};

/// Expects the message in one line and exit code 2.
void expect_refused(const WrongCall& call);

}  // namespace translution
