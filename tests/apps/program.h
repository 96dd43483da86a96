#pragma once

#include <nlohmann/json.hpp>
#include <string>

// Runs the real program, at TRANSLUTION_PROGRAM, as a shell would.
namespace translution {

struct Outcome {
  int code;
  std::string out, err;
};

Outcome run(const std::string& arguments);

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
