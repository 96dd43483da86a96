#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// Runs the real program, at TRANSLUTION_PROGRAM, as a shell would.
namespace translution {

struct Outcome {
  int code;  // -1: ended by a signal
  std::string out, err;
};

/// Runs the program. Thread-safe. `before` is placed in front of it: environment variables, as in
/// with_fault("kill:7"). Calls in the usual environment fork a process that has loaded LibTorch
/// (tests/support/prestart.h).
Outcome run(const std::string& arguments, const std::string& before = "");

/// Environment variables that make a system call of the program fail (tests/support/write_fault.h).
std::string with_fault(const std::string& fault);

/// The program as a background process.
class Started {
 public:
  explicit Started(const std::string& arguments, const std::string& before = "");
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  pid_t id() const { return id_; }
  void send(int signal) const;
  Outcome wait() const;  // call once; `out` is empty

 private:
  const std::string errors_;  // a file
  const pid_t id_;
};

/// The outcome of a call that may crash or hang.
struct Measured {
  int code = -1;         // -1: ended by a signal
  int signal = 0;        // that ended it
  bool hung = false;     // killed after the time limit
  int64_t peak_kib = 0;  // peak memory
  std::string err;
};

/// Runs the program for at most `seconds`, with standard error in the file `errors`. Thread-safe.
Measured run_measured(const std::string& arguments, double seconds, const std::string& errors);

/// The output of a call. Expects success and nothing on standard error.
std::string output_of(const std::string& arguments);

/// The lines of a text that contain `part`.
std::vector<std::string> lines_with(const std::string& text, const std::string& part);
/// The output of a call with --json, parsed.
nlohmann::json json_of(const std::string& arguments);

struct WrongCall {
  const char* arguments;
  const char* message;
};

/// Expects the message in one line and exit code 2.
void expect_refused(const WrongCall& call);

}  // namespace translution
