#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace translution::testing {

/// Runs the work in a child process. Returns its exit code, or minus the signal that ended it.
template <typename Work>
int in_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      work();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Runs a shell command and returns its output; sets `code` to its exit code.
inline std::string output_of_command(const std::string& command, int* code) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int letter; (letter = std::fgetc(pipe)) != EOF;) text += static_cast<char>(letter);
  const int status = pclose(pipe);
  *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return text;
}

/// The message of the `Error` that the work throws; empty if it does not throw.
template <typename Error = std::runtime_error, typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace translution::testing
