#include "tests/data/pictures.h"

#include <turbojpeg.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "translution/core/error.h"

namespace translution {
namespace {

namespace fs = std::filesystem;

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string compress_pixels(const uint8_t* pixels, int rows, int cols, int format, int subsampling,
                            int quality, int flags) {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const tjhandle handle = tjInitCompress();
  const int failed = tjCompress2(handle, pixels, cols, 0, rows, format, &bytes, &size, subsampling,
                                 quality, flags);
  const std::string jpeg(reinterpret_cast<const char*>(bytes), failed ? 0 : size);
  tjFree(bytes);
  tjDestroy(handle);
  ensure(!failed, "TurboJPEG cannot write a picture");
  return jpeg;
}

}  // namespace

RgbImage make_image(int rows, int cols, const std::function<int(int, int, int)>& f) {
  RgbImage image{rows, cols, {}};
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col < cols; ++col)
      for (int c = 0; c < 3; ++c) image.pixels.push_back(static_cast<uint8_t>(f(row, col, c)));
  return image;
}

RgbImage varied_image(int rows, int cols) {
  return make_image(rows, cols, [](int row, int col, int c) {
    return c == 0 ? row * 7 + col : c == 1 ? col * 5 + 3 : (row * row + col * 11) / 3;
  });
}

RgbImage flat_image(int rows, int cols, uint8_t value) {
  return make_image(rows, cols, [=](int, int, int) { return value; });
}

const uint8_t* pixel(const RgbImage& image, int row, int col) {
  return &image.pixels.at((static_cast<size_t>(row) * image.cols + col) * 3);
}

std::string to_jpeg(const RgbImage& image, int subsampling, int quality, int flags) {
  return compress_pixels(image.pixels.data(), image.rows, image.cols, TJPF_RGB, subsampling,
                         quality, flags);
}

std::string cmyk_jpeg(int rows, int cols, const std::vector<uint8_t>& inks) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < rows * cols; ++i) pixels.insert(pixels.end(), inks.begin(), inks.end());
  return compress_pixels(pixels.data(), rows, cols, TJPF_CMYK, TJSAMP_444, 100, 0);
}

std::string to_png(const RgbImage& image) {
  cv::Mat bgr;
  cv::cvtColor(cv::Mat(image.rows, image.cols, CV_8UC3, const_cast<uint8_t*>(image.pixels.data())),
               bgr, cv::COLOR_RGB2BGR);
  std::vector<uint8_t> bytes;
  ensure(cv::imencode(".png", bgr, bytes), "OpenCV cannot write a picture");
  return {bytes.begin(), bytes.end()};
}

std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto* start = reinterpret_cast<const unsigned char*>(body.data());
  return big_endian(data.size()) + body + big_endian(crc32(0, start, body.size()));
}

std::string RawPng::bytes() const {
  std::string scanned;
  for (const std::string& line : lines) scanned += '\0' + line;
  std::string packed(compressBound(scanned.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(scanned.data()), scanned.size());
  packed.resize(size);
  const std::string header = big_endian(cols) + big_endian(rows) + static_cast<char>(bits) +
                             static_cast<char>(colour_type) + std::string(3, '\0');
  return "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", header) +
         (palette.empty() ? "" : png_chunk("PLTE", palette)) + ancillary +
         png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "image_tests_XXXXXX").string();
  ensure(mkdtemp(name.data()) != nullptr, name, ": cannot be made");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() { fs::remove_all(path_); }

std::string TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  const fs::path file = path_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
  return file.string();
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace translution
