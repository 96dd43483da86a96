# compile_in_groups(TARGET): compiles up to five neighbouring sources of a folder as one, so that
# headers and templates are compiled once. Names in anonymous namespaces must therefore differ within a
# folder. Turn off with -DTRANSLUTION_GROUPS=OFF.
option(TRANSLUTION_GROUPS "Compile sources in groups (faster from scratch)" ON)
function(compile_in_groups target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR group "0${count_${folder}} / 5")
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TRANSLUTION_GROUPS}
                                             UNITY_BUILD_MODE GROUP)
endfunction()
