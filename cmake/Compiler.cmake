# Warnings, and ccache where it is present.
add_compile_options(-Wall -Wextra -Wshadow=local -Wnon-virtual-dtor -Woverloaded-virtual)
if(TRANSLUTION_WERROR)
  add_compile_options(-Werror)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Messages name files below the source directory, whichever that is.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# The libraries export what TRANSLUTION_API marks (translution/core/export.h).
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
# Instances of others' templates are not exported either.
function(export_marked_names library)
  target_link_options(${library} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
  set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
endfunction()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Programs are compiled like the library, so that the tests can use its precompiled header.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)

find_program(CCACHE ccache)
if(CCACHE)
  # ccache only trusts a precompiled header when it is told that this is meant. With paths relative to
  # the base, one clone of the project profits from the builds of another.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)
  endif()
endif()
