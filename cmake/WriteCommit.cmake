# cmake -DSOURCE=DIR -DOUTPUT=FILE -P WriteCommit.cmake: a header with the commit that DIR is at, written
# only when that has changed. Runs in every build, since a commit does not make CMake run again.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git describe --always --dirty WORKING_DIRECTORY ${SOURCE}
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define TRANSLUTION_COMMIT \"@commit@\"\n" @ONLY)
