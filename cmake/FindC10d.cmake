# TRANSLUTION_C10D: 1 if this LibTorch has c10d with Gloo, else 0: training in several processes then
# refuses to start. C10D_INCLUDE_DIRS: what its headers include besides those of LibTorch.
find_path(C10D_INCLUDE torch/csrc/distributed/c10d/ProcessGroupGloo.hpp
          PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE)
find_path(GLOO_INCLUDE gloo/context.h PATHS ${TORCH_INCLUDE_DIRS} /usr/include
          NO_DEFAULT_PATH NO_CACHE)
if(TORCH_ROOT)  # PyTorch's wheels have Gloo, but not its headers
  set(GLOO_INCLUDE ${PROJECT_BINARY_DIR}/gloo_types)
  set(C10D_INCLUDE_DIRS ${GLOO_INCLUDE})
  foreach(header algorithm common/error context rendezvous/store transport/device)
    file(CONFIGURE OUTPUT ${GLOO_INCLUDE}/gloo/${header}.h
         CONTENT "#include \"@PROJECT_SOURCE_DIR@/cmake/gloo_types.h\"\n")
  endforeach()
endif()
set(TRANSLUTION_C10D 0)
if(C10D_INCLUDE AND GLOO_INCLUDE)
  set(TRANSLUTION_C10D 1)
endif()
message(STATUS "c10d with Gloo: ${TRANSLUTION_C10D}")
