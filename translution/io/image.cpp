#include "translution/io/image.h"

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

void check_image(const RgbImage& image) {
  require(image.rows > 0 && image.cols > 0 &&
              image.pixels.size() == size_t{3} * image.rows * image.cols,
          "image: expected rows, columns and 3 values per pixel, got ", image.rows, "x", image.cols,
          " and ", image.pixels.size(), " values");
}

std::string encode_png(const RgbImage& image) {
  check_image(image);
  const cv::Mat rgb(image.rows, image.cols, CV_8UC3, const_cast<uint8_t*>(image.pixels.data()));
  cv::Mat bgr;
  cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
  std::vector<uint8_t> bytes;
  ensure(cv::imencode(".png", bgr, bytes, {cv::IMWRITE_PNG_COMPRESSION, 9}),
         "image: OpenCV cannot write PNG");
  return {bytes.begin(), bytes.end()};
}

}  // namespace translution
