# LibTorch, and the C++ standard that its headers need: 17, or 20 from 2.9 on.
#   TRANSLUTION_TORCH=system  the LibTorch that find_package(Torch) finds, such as Debian's
#   TRANSLUTION_TORCH=python  the one inside the torch package of TRANSLUTION_PYTHON
#   TRANSLUTION_TORCH=auto    system if it is there, else python
# TORCH_ROOT: the folder of the torch package, empty for a LibTorch of the system.
set(TRANSLUTION_TORCH auto CACHE STRING "Where LibTorch is taken from: auto, system or python")
set_property(CACHE TRANSLUTION_TORCH PROPERTY STRINGS auto system python)
set(TORCH_ROOT "")

# The folders come from the package itself: its find_package(Torch) stops without a CUDA toolkit if
# the package was built for CUDA.
macro(take_torch_of_python)
  execute_process(COMMAND ${TRANSLUTION_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/ask_torch.py
                  OUTPUT_VARIABLE answer ERROR_VARIABLE problem RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "LibTorch: ${TRANSLUTION_PYTHON} cannot import torch; activate the environment "
            "that has it, or set -DTRANSLUTION_PYTHON to its interpreter. pip needs "
            "--no-build-isolation: pip install --no-build-isolation .\n${problem}")
  endif()
  list(GET answer 0 Torch_VERSION)
  list(GET answer 1 TORCH_ROOT)
  list(GET answer 2 cxx11_abi)
  get_filename_component(library ${TORCH_ROOT}/lib/libtorch_cpu.so REALPATH)
  get_filename_component(root ${TORCH_ROOT} REALPATH)
  string(FIND "${library}" "${root}/" position)
  if(position EQUAL 0)
    set(TORCH_INCLUDE_DIRS ${TORCH_ROOT}/include ${TORCH_ROOT}/include/torch/csrc/api/include)
    set(TORCH_LIBRARY ${TORCH_ROOT}/lib/libtorch.so)
    set(TORCH_LIBRARIES ${TORCH_LIBRARY} ${TORCH_ROOT}/lib/libtorch_cpu.so ${TORCH_ROOT}/lib/libc10.so)
    set(TORCH_CXX_FLAGS -D_GLIBCXX_USE_CXX11_ABI=${cxx11_abi})
    add_compile_options(${TORCH_CXX_FLAGS})
    # Not CMAKE_INSTALL_RPATH_USE_LINK_PATH: it leaves out an environment inside of the source tree.
    set(CMAKE_INSTALL_RPATH ${TORCH_ROOT}/lib)
    # PyTorch's wheels bring an OpenMP runtime. A second one in the process would have threads of its own.
    get_filename_component(site ${TORCH_ROOT} DIRECTORY)
    file(GLOB bundled ${TORCH_ROOT}/lib/libgomp*.so* ${site}/torch.libs/libgomp*.so*)
    if(bundled)
      list(GET bundled 0 bundled)
      get_filename_component(folder ${bundled} DIRECTORY)
      list(APPEND CMAKE_INSTALL_RPATH ${folder})
      list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)
      set(OpenMP_gomp_LIBRARY ${bundled} CACHE FILEPATH "The OpenMP runtime of LibTorch" FORCE)
    endif()
  else()  # Debian's python3-torch has links to the system's LibTorch
    set(TORCH_ROOT "")
    find_package(Torch REQUIRED)
  endif()
endmacro()

if(TRANSLUTION_TORCH STREQUAL auto)
  find_package(Torch QUIET)
elseif(TRANSLUTION_TORCH STREQUAL system)
  find_package(Torch REQUIRED)
elseif(NOT TRANSLUTION_TORCH STREQUAL python)
  message(FATAL_ERROR "TRANSLUTION_TORCH: expected auto, system or python, got ${TRANSLUTION_TORCH}")
endif()
if(TRANSLUTION_TORCH STREQUAL python OR NOT Torch_FOUND)
  if(Python3_EXECUTABLE)  # what scikit-build-core passes
    set(TRANSLUTION_PYTHON ${Python3_EXECUTABLE})
  endif()
  find_program(TRANSLUTION_PYTHON python3 REQUIRED DOC "The interpreter whose torch is used")
  take_torch_of_python()
else()
  set(TRANSLUTION_PYTHON /usr/bin/python3 CACHE FILEPATH "The interpreter that runs the Python tests")
endif()
message(STATUS "LibTorch ${Torch_VERSION}: ${TORCH_LIBRARY}")

if(Torch_VERSION VERSION_GREATER_EQUAL 2.9)
  set(CMAKE_CXX_STANDARD 20)
else()
  set(CMAKE_CXX_STANDARD 17)
endif()
set(CMAKE_CXX_STANDARD_REQUIRED ON)
# TorchConfig of 1.13 asks for C++14 through its targets; ours is higher.
foreach(target torch torch_library torch_cpu c10)
  if(TARGET ${target})
    set_property(TARGET ${target} PROPERTY INTERFACE_COMPILE_FEATURES "")
    get_target_property(options ${target} INTERFACE_COMPILE_OPTIONS)
    if(options)
      list(FILTER options EXCLUDE REGEX "std=")
      set_property(TARGET ${target} PROPERTY INTERFACE_COMPILE_OPTIONS "${options}")
    endif()
  endif()
endforeach()
include_directories(SYSTEM ${TORCH_INCLUDE_DIRS})
