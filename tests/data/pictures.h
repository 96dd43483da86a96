#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "translution/data/image_file.h"

namespace translution {

/// Values of `f(row, col, channel)`, cut to 8 bits.
RgbImage make_image(int rows, int cols, const std::function<int(int, int, int)>& f);
/// Every pixel has another colour, nothing is symmetric.
RgbImage varied_image(int rows, int cols);
/// Nothing is like its neighbours.
RgbImage noise_image(int rows, int cols);
RgbImage flat_image(int rows, int cols, uint8_t value);
/// A digit of ours, as a PNG file.
std::string digit_png(int digit);
const uint8_t* pixel(const RgbImage& image, int row, int col);

/// How much of the colour a JPEG keeps.
enum class Chroma {
  full,       ///< 4:4:4
  half_cols,  ///< 4:2:2
  half_rows,  ///< 4:4:0
  quarter,    ///< 4:2:0
  none        ///< grey
};
std::string to_jpeg(const RgbImage& image, Chroma chroma, int quality = 95,
                    bool progressive = false);
/// A small one in which the last of three scans comes again and again.
std::string jpeg_in_scans(int scans);
/// One flat colour in inks, as an Adobe CMYK file stores them.
std::string cmyk_jpeg(int rows, int cols, const std::vector<uint8_t>& inks);

/// Any PNG: rows of `lines` are the packed scan lines without their filter bytes.
struct RawPng {
  uint32_t rows = 0, cols = 0;
  uint8_t bits = 8, colour_type = 2;
  std::vector<std::string> lines;
  std::string palette;    ///< none if empty
  std::string ancillary;  ///< whole chunks, put before the pixels

  std::string bytes() const;
};
std::string png_chunk(const std::string& type, const std::string& data);

/// EXIF as cameras write it, with one entry before the orientation and one behind it.
std::string exif_with(int orientation, bool little_endian = true);
/// The JPEG with this EXIF in front.
std::string with_exif(const std::string& jpeg, const std::string& exif);
/// What is stored so that EXIF's orientation, 1 to 8, shows `image`.
RgbImage stored_for(const RgbImage& image, int orientation);

/// Small changes of a JPEG that libjpeg warns of, though all pixels are there.
std::vector<std::string> harmless_changes(const std::string& jpeg);

/// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path() const { return path_.string(); }
  /// Writes a file below it, with the folders on the way; returns the file's path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

/// What `f` throws says; empty where it throws nothing.
std::string message_of(const std::function<void()>& f);

}  // namespace translution
