# embed_file(VAR path/to/name.ext): a source file that defines
#   extern const char* const translution::embedded_<name>;
# with the text of the file, so that the installed program needs no data directory.
function(embed_file variable path)
  get_filename_component(name ${path} NAME_WE)
  file(READ ${path} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  set(output ${PROJECT_BINARY_DIR}/embedded/${name}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"namespace translution {
extern const char* const embedded_${name};
const char* const embedded_${name} = R\"embedded(@text@)embedded\";
}  // namespace translution
")
  set(${variable} ${output} PARENT_SCOPE)
endfunction()
