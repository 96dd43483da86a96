#include "tests/data/pictures.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

// After <cstdio>: jpeglib.h needs it.
#include <jpeglib.h>
#include <zlib.h>

#include "translution/core/error.h"
#include "translution/data/digits.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

// libjpeg prints any error and ends the test program.
struct JpegWriter : jpeg_compress_struct {
  JpegWriter(int rows, int cols, J_COLOR_SPACE colours, int channels) {
    err = jpeg_std_error(&errors_);
    jpeg_create_compress(this);
    jpeg_mem_dest(this, &bytes_, &size_);
    image_height = rows, image_width = cols;
    in_color_space = colours, input_components = channels;
    jpeg_set_defaults(this);
  }
  ~JpegWriter() {
    jpeg_destroy_compress(this);
    std::free(bytes_);
  }
  // Sampling factors of the first channel relative to the others.
  void set_sampling(int across, int down) {
    for (int c = 0; c < num_components; ++c)
      comp_info[c].h_samp_factor = comp_info[c].v_samp_factor = 1;
    comp_info[0].h_samp_factor = across, comp_info[0].v_samp_factor = down;
  }
  std::string write(const std::vector<uint8_t>& pixels) {
    jpeg_start_compress(this, TRUE);
    auto* row = const_cast<JSAMPROW>(pixels.data());
    for (; next_scanline < image_height; row += image_width * input_components)
      jpeg_write_scanlines(this, &row, 1);
    jpeg_finish_compress(this);
    return {reinterpret_cast<const char*>(bytes_), size_};
  }

 private:
  jpeg_error_mgr errors_{};
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;
};

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

RgbImage noise_image(int rows, int cols) {
  uint32_t state = 1;
  return make_image(rows, cols, [&](int, int, int) {
    state = state * 1664525 + 1013904223;
    return state >> 24;
  });
}

RgbImage flat_image(int rows, int cols, uint8_t value) {
  return make_image(rows, cols, [=](int, int, int) { return value; });
}

std::string digit_png(int digit) {
  uint8_t grey[kDigitSide][kDigitSide];
  Random random({7});
  draw_digit(digit, random, *grey);
  return encode_png(
      make_image(kDigitSide, kDigitSide, [&](int row, int col, int) { return grey[row][col]; }));
}

const uint8_t* pixel(const RgbImage& image, int row, int col) {
  return &image.pixels.at((static_cast<size_t>(row) * image.cols + col) * 3);
}

std::string to_jpeg(const RgbImage& image, Chroma chroma, int quality, bool progressive) {
  JpegWriter writer(image.rows, image.cols, JCS_RGB, 3);
  jpeg_set_quality(&writer, quality, TRUE);
  if (chroma == Chroma::none) jpeg_set_colorspace(&writer, JCS_GRAYSCALE);
  writer.set_sampling(chroma == Chroma::half_cols || chroma == Chroma::quarter ? 2 : 1,
                      chroma == Chroma::half_rows || chroma == Chroma::quarter ? 2 : 1);
  if (progressive) jpeg_simple_progression(&writer);
  return writer.write(image.pixels);
}

std::string jpeg_in_scans(int scans) {
  const jpeg_scan_info one_channel_each[] = {
      {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  JpegWriter writer(16, 16, JCS_RGB, 3);
  writer.scan_info = one_channel_each, writer.num_scans = 3;
  const std::string jpeg = writer.write(flat_image(16, 16, 80).pixels);
  const size_t last = jpeg.rfind("\xFF\xDA"), end = jpeg.size() - 2;
  std::string longer = jpeg.substr(0, end);
  for (int scan = 3; scan < scans; ++scan) longer += jpeg.substr(last, end - last);
  return longer + jpeg.substr(end);
}

std::string cmyk_jpeg(int rows, int cols, const std::vector<uint8_t>& inks) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < rows * cols; ++i) pixels.insert(pixels.end(), inks.begin(), inks.end());
  JpegWriter writer(rows, cols, JCS_CMYK, 4);
  jpeg_set_colorspace(&writer, JCS_YCCK);
  jpeg_set_quality(&writer, 100, TRUE);
  writer.set_sampling(1, 1);
  return writer.write(pixels);
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

std::string exif_with(int orientation, bool little_endian) {
  const auto number = [=](uint32_t value, int size) {
    std::string bytes = big_endian(value).substr(4 - size);
    if (little_endian) std::reverse(bytes.begin(), bytes.end());
    return bytes;
  };
  const auto entry = [&](uint32_t tag, uint32_t value) {  // one 16-bit number
    return number(tag, 2) + number(3, 2) + number(1, 4) + number(value, 2) + number(0, 2);
  };
  return (little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) + number(3, 2) +
         entry(0x0103, 6) + entry(0x0112, orientation) + entry(0x0128, 2) + number(0, 4);
}

std::string with_exif(const std::string& jpeg, const std::string& exif) {
  const std::string body = std::string("Exif\0\0", 6) + exif;
  return jpeg.substr(0, 2) + "\xFF\xE1" + big_endian(body.size() + 2).substr(2) + body +
         jpeg.substr(2);
}

// Follows EXIF's definition: the sides where the first stored row and column are displayed.
RgbImage stored_for(const RgbImage& image, int orientation) {
  const bool row_is_column = orientation >= 5;
  const bool first_row_last = orientation == 3 || orientation == 4 || orientation == 6 ||
                              orientation == 7;  // at the bottom, or on the right
  const bool first_column_last = orientation == 2 || orientation == 3 || orientation == 7 ||
                                 orientation == 8;  // on the right, or at the bottom
  const int rows = row_is_column ? image.cols : image.rows;
  const int cols = row_is_column ? image.rows : image.cols;
  return make_image(rows, cols, [&](int row, int col, int c) {
    const int a = first_row_last ? rows - 1 - row : row;
    const int b = first_column_last ? cols - 1 - col : col;
    return pixel(image, row_is_column ? b : a, row_is_column ? a : b)[c];
  });
}

std::vector<std::string> harmless_changes(const std::string& jpeg) {
  std::vector<std::string> files;
  const size_t jfif = jpeg.find("JFIF"), scan = jpeg.find("\xFF\xDA");
  files.push_back(jpeg);
  files.back()[jfif + 5] = 3;  // an unknown version
  files.push_back(jpeg);
  files.back()[scan + 4 + 2 * jpeg[scan + 4] + 2] = 0;  // a sequential scan of one coefficient
  files.push_back(jpeg);
  files.back().insert(scan, 7, '\0');  // padding between segments
  files.push_back(jpeg);
  files.back().insert(jpeg.size() - 2, "left over");
  // Adobe's segment with an unknown colour transform, instead of JFIF's segment, which would
  // override it.
  const size_t length = 2 + static_cast<unsigned char>(jpeg[5]);
  files.push_back(jpeg.substr(0, 2) +
                  std::string("\xFF\xEE\0\x0E"
                              "Adobe\0\x64\0\0\0\0\5",
                              16) +
                  jpeg.substr(2 + length));
  return files;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "image_tests_XXXXXX").string();
  ensure(mkdtemp(name.data()) != nullptr, name, ": cannot be created");
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
