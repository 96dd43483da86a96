#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <exception>

#include "translution/core/export.h"

namespace translution {

/// While one lives, the calling thread starts no others, for our own work or in the libraries that
/// multiply for it: they would cut a product by the number of threads, and the bits would depend on
/// it.
class TRANSLUTION_API OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

/// While one lives, signals wait: no handler runs on the calling thread. In the midst of a product
/// oneDNN up to 3.11.1 lets the stack pointer point into the heap, where a handler would write its
/// frame over whatever lies there: Ctrl-C could end in a crash (oneDNN's issue 4845).
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t held;
    sigfillset(&held);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&held, fault);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

/// How many threads the calling one may work with: those of the Runtime, or itself alone inside a
/// parallel region and under OneThread.
TRANSLUTION_API int team_size();

/// Calls work(number, threads) on each of team_size() threads at the same time. What one of them
/// throws is thrown here, once all have ended. The team has one size, however little there is to
/// do: OpenMP takes long to make one of another size. Inlined, so that a debugger shows the caller
/// above the work.
template <typename Work>
[[gnu::always_inline]] inline void on_team(const Work& work) {
  const int threads = team_size();
  if (threads == 1) return work(0, 1);
  std::exception_ptr failure;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
#pragma omp parallel num_threads(threads)
  try {
    work(omp_get_thread_num(), omp_get_num_threads());
  } catch (...) {
    if (!failed.test_and_set()) failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
}

/// Calls work(begin, end) on ranges that make up [0, count): one for each thread, of `grain` or
/// more. The work on an index must not depend on the range.
template <typename Work>
[[gnu::always_inline]] inline void parallel_ranges(int64_t count, int64_t grain, const Work& work) {
  if (count <= 0) return;
  const int64_t most = (count + grain - 1) / grain;
  if (most == 1) return work(int64_t{0}, count);
  on_team([&](int number, int threads) __attribute__((always_inline)) {
    const int64_t ranges = std::min<int64_t>(threads, most), length = (count + ranges - 1) / ranges;
    const int64_t begin = number * length;
    if (begin < count) work(begin, std::min(count, begin + length));
  });
}

/// Calls make() once on every thread, and what it returns on the indices 0 … count - 1, each once:
/// whichever thread is free takes the next. The work on an index must not depend on the thread. A
/// fixed share per thread would leave one idle whenever the system takes time from the other.
template <typename Make>
[[gnu::always_inline]] inline void parallel_each(int64_t count, const Make& make) {
  std::atomic<int64_t> next{0};
  const auto take = [&](int number, int) __attribute__((always_inline)) {
    if (number >= count) return;
    const OneThread alone;  // where one thread does it all, this is no parallel region
    const SignalsWait quiet;
    auto work = make();
    for (int64_t index = next++; index < count; index = next++) work(index);
  };
  if (count <= 1) return take(0, 1);
  on_team(take);
}

}  // namespace translution
