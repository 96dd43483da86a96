# What `cmake --install` puts where: libraries, headers, the description for find_package and
# pkg-config, the program with its manual and completions. Two components: "program", all that is
# needed to run, and "development", all that is needed to build on it.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Translution)

# --- libraries and program
file(RELATIVE_PATH libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set(from_library "$ORIGIN" ${CMAKE_INSTALL_RPATH})
set(from_program "$ORIGIN/${libraries}" ${CMAKE_INSTALL_RPATH})
set_target_properties(translution_train PROPERTIES EXPORT_NAME train INSTALL_RPATH "${from_library}")
set_target_properties(translution_cli PROPERTIES INSTALL_RPATH "${from_program}")
target_compile_features(translution PUBLIC cxx_std_${CMAKE_CXX_STANDARD})
target_compile_features(translution_static INTERFACE cxx_std_${CMAKE_CXX_STANDARD})
install(TARGETS translution translution_train translution_static EXPORT TranslutionTargets
  LIBRARY COMPONENT program NAMELINK_COMPONENT development
  ARCHIVE COMPONENT development)
install(TARGETS translution_cli COMPONENT program)

# --- headers
include(PublicHeaders)
foreach(header ${TRANSLUTION_PUBLIC_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT development)
endforeach()

# --- find_package(Translution) and pkg-config
string(REGEX MATCH "^[0-9]+\\.[0-9]+" TORCH_MINOR "${Torch_VERSION}")
list(TRANSFORM TORCH_INCLUDE_DIRS PREPEND "-isystem " OUTPUT_VARIABLE flags)
list(REMOVE_ITEM flags "-isystem /usr/include")  # the compiler looks there last by itself
list(JOIN flags " " TORCH_CFLAGS)
get_filename_component(TORCH_LIBDIR ${TORCH_LIBRARY} DIRECTORY)
# Not the system's LibTorch, if the library is built for that of an environment.
list(TRANSFORM CMAKE_INSTALL_RPATH PREPEND "-Wl,-rpath," OUTPUT_VARIABLE flags)
list(JOIN flags " " TORCH_RPATH)
install(EXPORT TranslutionTargets NAMESPACE Translution:: DESTINATION ${package_dir}
  COMPONENT development)
configure_package_config_file(cmake/TranslutionConfig.cmake.in TranslutionConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(TranslutionConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH root /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" root ${root})
configure_file(cmake/translution.pc.in translution.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/TranslutionConfig.cmake
  ${PROJECT_BINARY_DIR}/TranslutionConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/translution.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)

# --- what the program says about itself: its manual and the completions of two shells
set(generated ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})
function(install_output file destination arguments)
  add_custom_command(OUTPUT ${generated}/${file} DEPENDS translution_cli VERBATIM
    WORKING_DIRECTORY ${generated} COMMAND sh -c "$<TARGET_FILE:translution_cli> ${arguments}")
  install(FILES ${generated}/${file} DESTINATION ${destination} COMPONENT program)
endfunction()
install_output(translution.1.gz ${CMAKE_INSTALL_MANDIR}/man1
  "manual > translution.1 && gzip -9nf translution.1")
install_output(translution ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  "completion bash > translution")
install_output(_translution ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
  "completion zsh > _translution")
add_custom_target(generated ALL
  DEPENDS ${generated}/translution.1.gz ${generated}/translution ${generated}/_translution)
