# What the kernels multiply matrices with, and which instruction sets they are compiled for.

# oneDNN for wide products and libxsmm for narrow ones where they are found; a CBLAS always. Whoever
# links the archive needs them too: GEMM_LIBRARIES.
function(use_gemm_libraries target)
  find_path(CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-openmp openblas-pthread openblas REQUIRED)
  find_library(CBLAS_LIBRARY NAMES blas openblas cblas REQUIRED)
  target_include_directories(${target} PRIVATE ${CBLAS_INCLUDE})
  set(libraries ${CBLAS_LIBRARY})
  foreach(name DNNL XSMM)
    string(TOLOWER ${name} library)
    option(TRANSLUTION_${name} "Use lib${library} where it is found" ON)
    find_library(${name}_LIBRARY ${library})
    if(TRANSLUTION_${name} AND ${name}_LIBRARY)
      target_compile_definitions(${target} PRIVATE TRANSLUTION_HAS_${name})
      list(APPEND libraries ${${name}_LIBRARY})
    endif()
  endforeach()
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
