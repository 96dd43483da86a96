# TRANSLUTION_C10D: 1 if this LibTorch has c10d with Gloo and the headers of both are there, else 0:
# training in several processes then refuses to start. PyTorch's wheels lack the headers of Gloo.
find_path(GLOO_INCLUDE gloo/context.h HINTS ${TORCH_INCLUDE_DIRS} NO_CACHE)
find_path(C10D_INCLUDE torch/csrc/distributed/c10d/ProcessGroupGloo.hpp HINTS ${TORCH_INCLUDE_DIRS} NO_CACHE)
set(TRANSLUTION_C10D 0)
if(GLOO_INCLUDE AND C10D_INCLUDE AND NOT TORCH_ROOT)
  set(TRANSLUTION_C10D 1)
endif()
message(STATUS "Training in several processes: ${TRANSLUTION_C10D}")
