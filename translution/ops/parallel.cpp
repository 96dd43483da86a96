#include "translution/ops/parallel.h"

#include <ATen/Parallel.h>

#include "translution/ops/runtime.h"

// Of the MKL inside LibTorch from PyPI; null in other builds.
extern "C" [[gnu::weak]] int MKL_Set_Num_Threads_Local(int threads);

namespace translution {
namespace {

// Sets MKL's own number of threads for the calling thread and returns the previous one; 0: as many
// as OpenMP has.
int set_mkl_threads(int threads) {
  return MKL_Set_Num_Threads_Local != nullptr ? MKL_Set_Num_Threads_Local(threads) : 0;
}

thread_local int guards = 0;  // number of OneThread objects on this thread

}  // namespace

// LibTorch sets OpenMP's number of threads at its first use on a thread. at::get_num_threads()
// triggers that before we set the number to 1. Inside a parallel region this is not needed. MKL's
// number, which LibTorch sets too, takes precedence over OpenMP's.
OneThread::OneThread()
    : before_(omp_in_parallel() ? omp_get_max_threads() : at::get_num_threads()),
      mkl_before_(set_mkl_threads(1)) {
  ++guards;
  omp_set_num_threads(1);
}

OneThread::~OneThread() {
  --guards;
  omp_set_num_threads(before_);
  set_mkl_threads(mkl_before_);
}

int team_size() { return guards > 0 || omp_in_parallel() ? 1 : runtime().threads(); }

}  // namespace translution
