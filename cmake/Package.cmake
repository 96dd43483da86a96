# `make package`: two Debian packages out of the two components of the installation.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME translution)
set(CPACK_PACKAGE_CONTACT "The Translution project <translution@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
"This package has the program, which trains and runs networks of this and of the methods that it is
compared with, and the libraries.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"This package has headers, an archive, and the descriptions for CMake and pkg-config.")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME translution)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS libopenblas0-openmp)  # the reference BLAS is far slower
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtranslution-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(needed "translution (= ${PROJECT_VERSION})" g++ libtorch-dev nlohmann-json3-dev
    "libopenblas-openmp-dev | libblas-dev")
foreach(name dnnl xsmm)  # for whoever links the archive
  if(GEMM_LIBRARIES MATCHES "lib${name}\\.")
    list(APPEND needed lib${name}-dev)
  endif()
endforeach()
list(JOIN needed ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "cmake, pkg-config")

# Every Debian package needs a copyright file.
foreach(component program development)
  string(TOUPPER ${component} name)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME})
endforeach()
include(CPack)
