# Stands for a LibTorch of another version: a target of that name and a version, nothing else.
macro(find_package name)
  if("${name}" STREQUAL Torch)
    set(Torch_FOUND TRUE)
    set(Torch_VERSION 99.1.0)
  else()
    _find_package(${ARGV})
  endif()
endmacro()
