#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <exception>

#include "translution/core/export.h"

namespace translution {

/// While this object exists, neither our code nor LibTorch, OpenMP or BLAS starts other threads
/// from the calling thread. The libraries would split a product by the number of threads, and its
/// bits would depend on that number.
class TRANSLUTION_API OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_, mkl_before_;
};

/// While this object exists, signals are blocked on the calling thread. During a product, oneDNN up
/// to 3.11.1 lets the stack pointer point into the heap. A signal handler would write its frame
/// there and corrupt the heap, so Ctrl-C could crash the process (oneDNN issue 4845).
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&blocked, fault);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

/// The number of threads that a parallel call from this thread uses: Runtime::threads(), or 1
/// inside a parallel region and under OneThread.
TRANSLUTION_API int team_size();

/// Calls work(number, threads) on each of team_size() threads in parallel. Rethrows the first
/// exception after all threads have finished. The team always has the same size, even for little
/// work, because OpenMP is slow to create a team of another size. Inlined so that a debugger shows
/// the caller above the work.
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

/// Splits [0, count) into at most one range per thread, each of about `grain` indices or more, and
/// calls work(begin, end) on each in parallel. The work on an index must not depend on the range.
template <typename Work>
[[gnu::always_inline]] inline void parallel_ranges(int64_t count, int64_t grain, const Work& work) {
  if (count <= 0) return;
  const int64_t max_ranges = (count + grain - 1) / grain;
  if (max_ranges == 1) return work(int64_t{0}, count);
  on_team([&](int number, int threads) __attribute__((always_inline)) {
    const int64_t ranges = std::min<int64_t>(threads, max_ranges),
                  length = (count + ranges - 1) / ranges;
    const int64_t begin = number * length;
    if (begin < count) work(begin, std::min(count, begin + length));
  });
}

/// Calls make() once on each thread to get a function, and calls these functions on each index
/// 0 … count - 1 once. A free thread takes the next index. The work on an index must not depend on
/// the thread. With a fixed share per thread, one thread would idle whenever the system preempts
/// another.
template <typename Make>
[[gnu::always_inline]] inline void parallel_each(int64_t count, const Make& make) {
  std::atomic<int64_t> next{0};
  const auto take = [&](int number, int) __attribute__((always_inline)) {
    if (number >= count) return;
    const OneThread one_thread;  // a team of one is not a parallel region for OpenMP
    const SignalsWait signals_blocked;
    auto work = make();
    for (int64_t index = next++; index < count; index = next++) work(index);
  };
  if (count <= 1) return take(0, 1);
  on_team(take);
}

}  // namespace translution
