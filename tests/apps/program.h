#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

// Runs the real program, at TRANSLUTION_PROGRAM, as a shell would.
namespace translution {

struct Outcome {
  int code;  // -1: ended by a signal
  std::string out, err;
};

/// `before` stands in front of the program: variables, as in with_fault("kill:7").
Outcome run(const std::string& arguments, const std::string& before = "");

/// Variables that let a system call of the program fail (tests/support/write_fault.h).
std::string with_fault(const std::string& fault);

/// The program while it runs.
class Started {
 public:
  explicit Started(const std::string& arguments, const std::string& before = "");
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  void send(int signal) const;
  Outcome wait() const;  // once; `out` is not kept

 private:
  const std::string errors_;  // a file
  const pid_t id_;
};

/// A run that may go wrong in any way.
struct Measured {
  int code = -1;         // -1: ended by a signal
  int signal = 0;        // which
  bool hung = false;     // killed when its time was over
  int64_t peak_kib = 0;  // of memory
  std::string err;
};

/// For `seconds` at most; standard error goes through a file at `errors`. Any thread may call it.
Measured run_measured(const std::string& arguments, double seconds, const std::string& errors);

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
