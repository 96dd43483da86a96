# FORMAT: the library fmt. PyTorch's wheels bring its headers in another version, which come first; then
# fmt is compiled from these.
find_package(fmt REQUIRED)
if(TORCH_ROOT AND EXISTS ${TORCH_ROOT}/include/fmt/format.h)
  set(FORMAT fmt::fmt-header-only)
else()
  set(FORMAT fmt::fmt)
endif()
