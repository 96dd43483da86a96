#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "translution/data/image_file.h"

namespace translution {

/// The image with values f(row, col, channel), truncated to 8 bits.
RgbImage make_image(int rows, int cols, const std::function<int(int, int, int)>& f);
/// An asymmetric image in which every pixel has a different colour.
RgbImage varied_image(int rows, int cols);
/// Random noise.
RgbImage noise_image(int rows, int cols);
RgbImage flat_image(int rows, int cols, uint8_t value);
/// A digit drawn by draw_digit, as a PNG file.
std::string digit_png(int digit);
const uint8_t* pixel(const RgbImage& image, int row, int col);

/// Chroma subsampling of a JPEG.
enum class Chroma {
  full,       ///< 4:4:4
  half_cols,  ///< 4:2:2
  half_rows,  ///< 4:4:0
  quarter,    ///< 4:2:0
  none        ///< grey
};
std::string to_jpeg(const RgbImage& image, Chroma chroma, int quality = 95,
                    bool progressive = false);
/// A small JPEG with this many scans: the last of three is repeated.
std::string jpeg_in_scans(int scans);
/// A JPEG of one colour, with `inks` as an Adobe CMYK file stores them.
std::string cmyk_jpeg(int rows, int cols, const std::vector<uint8_t>& inks);

/// A PNG of any kind; `lines` are the packed scan lines without their filter bytes.
struct RawPng {
  uint32_t rows = 0, cols = 0;
  uint8_t bits = 8, colour_type = 2;
  std::vector<std::string> lines;
  std::string palette;    ///< none if empty
  std::string ancillary;  ///< complete chunks, inserted before the pixels

  std::string bytes() const;
};
std::string png_chunk(const std::string& type, const std::string& data);

/// EXIF as cameras write it, with one entry before the orientation and one after it.
std::string exif_with(int orientation, bool little_endian = true);
/// The JPEG with this EXIF segment inserted after its start marker.
std::string with_exif(const std::string& jpeg, const std::string& exif);
/// The image to store so that EXIF's orientation, 1 to 8, displays `image`.
RgbImage stored_for(const RgbImage& image, int orientation);

/// Variants of a JPEG that libjpeg warns about although no pixel is affected.
std::vector<std::string> harmless_changes(const std::string& jpeg);

/// A temporary folder, removed in the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path() const { return path_.string(); }
  /// Writes a file and creates its parent folders; returns the file's path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

/// The message of the exception that `f` throws; empty if it throws nothing.
std::string message_of(const std::function<void()>& f);

}  // namespace translution
