#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string>

// Half of the time of a short call goes into loading LibTorch. In tests, one process of the program
// loads it and then waits in front of `main` (prestart.cpp); for each call it forks a child, which
// runs `main` with the caller's arguments, environment, directory and standard streams. The caller
// is prestarted.cpp, which tests run in place of the program; it starts the program itself where a
// fork would be another thing than a start.
namespace translution::prestart {

/// The number of the listening socket, for the program; the socket's name, for its callers.
constexpr const char *kSocket = "TRANSLUTION_PRESTART", *kName = "TRANSLUTION_PRESTARTED";
/// A file into which a caller writes the peak memory in KiB.
constexpr const char* kPeak = "TRANSLUTION_PRESTARTED_PEAK";

/// What a caller hears: first whether its call is taken, then how it ended.
enum Reply : char { kTaken, kRefused };
struct Ended {
  int32_t status;  ///< as of waitpid
  int64_t peak_kib;
};

inline bool is_own(const std::string& variable) {
  for (const char* name : {kSocket, kName, kPeak})
    if (variable.rfind(name + std::string("="), 0) == 0) return true;
  return false;
}

/// What a process has from its start: a child of a fork must have the same. Its cores are set.
inline std::string inherited(char** environment) {
  std::set<std::string> parts;
  for (char** entry = environment; *entry != nullptr; ++entry)  // what libraries read at their load
    for (const char* prefix : {"LD_LIB", "OMP_", "GOMP_", "OPENBLAS_", "MKL_", "DNNL_", "ATEN_",
                               "TRANSLUTION_", "MALLOC_", "GLIBC_", "LANG", "LC_"})
      if (std::strncmp(*entry, prefix, std::strlen(prefix)) == 0 && !is_own(*entry))
        parts.insert(*entry);
  std::string text;
  for (const auto& part : parts) text += part + "\n";
  for (int which = 0; which < RLIMIT_NLIMITS; ++which) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource>(which), &limit);
    text += std::to_string(limit.rlim_cur) + " ";
  }
  const mode_t mask = umask(0);
  umask(mask);
  text += std::to_string(mask);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    text += now.sa_handler == SIG_DFL ? "d" : "i";
  }
  return text;
}

}  // namespace translution::prestart
