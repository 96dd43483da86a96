# What the kernels multiply matrices with, and which instruction sets they are compiled for.

# LibTorch from PyPI contains a BLAS and exports it. Its oneDNN is hidden.
if(TORCH_ROOT)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES ${TORCH_LIBRARIES})
  check_cxx_source_compiles("extern \"C\" void sgemm_(); int main() { sgemm_(); }" TORCH_EXPORTS_BLAS)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()

# Our own kernels, and where they are found oneDNN for wide products and libxsmm for narrow ones. A
# package from PyPI must not need the system's shared libraries, so beside a LibTorch from there only
# archives are used. Whoever links our archive needs them too: GEMM_LIBRARIES.
function(use_gemm_libraries target)
  set(libraries)
  set(default_DNNL ON)
  set(default_XSMM ON)
  if(TORCH_ROOT)
    set(default_DNNL OFF)  # its headers come from LibTorch there, in another version
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  endif()
  foreach(name DNNL XSMM)
    string(TOLOWER ${name} library)
    option(TRANSLUTION_${name} "Use lib${library} where it is found" ${default_${name}})
    find_library(${name}_LIBRARY ${library})
    if(TRANSLUTION_${name} AND ${name}_LIBRARY)
      target_compile_definitions(${target} PRIVATE TRANSLUTION_HAS_${name})
      list(APPEND libraries ${${name}_LIBRARY})
    endif()
  endforeach()
  # libxsmm refers to a BLAS for wide products, which it never gets from us.
  if(TRANSLUTION_XSMM AND XSMM_LIBRARY AND TORCH_EXPORTS_BLAS)
    list(APPEND libraries ${TORCH_LIBRARIES})
  elseif(TRANSLUTION_XSMM AND XSMM_LIBRARY)
    find_library(BLAS_LIBRARY NAMES blas openblas REQUIRED)
    list(APPEND libraries ${BLAS_LIBRARY})
  endif()
  target_link_libraries(${target} PUBLIC ${libraries})
  set(GEMM_LIBRARIES ${libraries} PARENT_SCOPE)
endfunction()

# isa_<set>.cpp, each under flags of its own; chosen at run time.
function(add_isa_sources target folder)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512)
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 ${avx512})
  set(flags_avx512_bf16 ${avx512} -mavx512bf16)
  set(flags_amx -mamx-tile -mamx-bf16)
  foreach(isa avx2 avx512 avx512_bf16 amx)
    target_sources(${target} PRIVATE ${folder}/isa_${isa}.cpp)
    set_source_files_properties(${folder}/isa_${isa}.cpp PROPERTIES
                                COMPILE_OPTIONS "${flags_${isa}}")
  endforeach()
  target_compile_definitions(${target} PRIVATE TRANSLUTION_X86)
endfunction()
