# image_libraries: what pictures are decoded and augmented with. Debian's packages of single OpenCV
# modules bring no CMake files, so all are looked up by name.
find_package(ZLIB REQUIRED)
find_path(OPENCV_INCLUDE opencv2/imgproc.hpp PATH_SUFFIXES opencv4 REQUIRED)
find_path(JPEG_INCLUDE jpeglib.h REQUIRED)
add_library(image_libraries INTERFACE)
target_include_directories(image_libraries SYSTEM INTERFACE ${OPENCV_INCLUDE} ${JPEG_INCLUDE})
foreach(name jpeg opencv_imgcodecs opencv_imgproc opencv_core)
  string(TOUPPER ${name}_LIBRARY variable)
  find_library(${variable} ${name} REQUIRED)
  target_link_libraries(image_libraries INTERFACE ${${variable}})
endforeach()
target_link_libraries(image_libraries INTERFACE ZLIB::ZLIB)
