#pragma once

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <csignal>

namespace translution {

/// While one lives, the libraries that multiply for the calling thread start no others: they would
/// cut a product by the number of threads, and the bits would depend on it.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
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

/// Calls make() once on every thread, and what it returns on the indices 0 … count - 1, each once:
/// whichever thread is free takes the next. The work on an index must not depend on the thread. A
/// fixed share per thread would leave one idle whenever the system takes time from the other.
/// Inlined, so that a debugger shows the caller above the work.
template <typename Make>
[[gnu::always_inline]] inline void parallel_each(int64_t count, const Make& make) {
  std::atomic<int64_t> next{0};
  const int64_t threads = std::min<int64_t>(count, at::get_num_threads());
  at::parallel_for(
      0, threads, 1, [&](int64_t, int64_t) __attribute__((always_inline)) {
        const OneThread alone;  // where one thread does it all, this is no parallel region
        const SignalsWait quiet;
        auto work = make();
        for (int64_t index = next++; index < count; index = next++) work(index);
      });
}

}  // namespace translution
