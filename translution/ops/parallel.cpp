#include "translution/ops/parallel.h"

#include <ATen/Parallel.h>

#include "translution/kernels/gemm.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

thread_local int guards = 0;  // number of OneThread objects on this thread

}  // namespace

// LibTorch sets OpenMP's number of threads at its first use on a thread. at::get_num_threads()
// triggers that before we set the number to 1. Inside a parallel region this is not needed. MKL's
// number, which LibTorch sets too, takes precedence over OpenMP's.
OneThread::OneThread()
    : before_(omp_in_parallel() ? omp_get_max_threads() : at::get_num_threads()),
      mkl_before_(kernels::set_mkl_threads(1)) {
  ++guards;
  omp_set_num_threads(1);
}

OneThread::~OneThread() {
  --guards;
  omp_set_num_threads(before_);
  kernels::set_mkl_threads(mkl_before_);
}

int team_size() { return guards > 0 || omp_in_parallel() ? 1 : runtime().threads(); }

}  // namespace translution
