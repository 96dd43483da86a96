#include "translution/data/image_file.h"

#include <turbojpeg.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "translution/core/error.h"
#include "translution/io/file.h"

namespace translution {
namespace {

constexpr int64_t kMostPixels = 100'000'000;
constexpr int kMostSide = 65500;
constexpr int64_t kMostBytes = int64_t{1} << 28;
// A small file may ask for a picture that decodes within 64 MB: progressive CMYK takes 15 bytes per
// pixel. Beyond that only blank pictures have fewer bytes than one per 100 pixels.
constexpr int64_t kPixelsOfAnyFile = 4'000'000, kPixelsPerByte = 100;

constexpr std::string_view kJpegStart = "\xFF\xD8\xFF";
constexpr std::string_view kPngStart = "\x89PNG\r\n\x1A\n";

bool starts_with(std::string_view bytes, std::string_view start) {
  return bytes.substr(0, start.size()) == start;
}

ImageSize checked_size(int64_t rows, int64_t cols, size_t bytes, const std::string& name) {
  ensure(rows > 0 && cols > 0 && rows <= kMostSide && cols <= kMostSide, name,
         ": says that it has ", rows, "x", cols, " pixels, wanted sides from 1 to ", kMostSide);
  const int64_t pixels = rows * cols;
  ensure(pixels <= kMostPixels, name, ": has ", rows, "x", cols, " pixels, wanted at most ",
         kMostPixels);
  ensure(pixels <= std::max(kPixelsOfAnyFile, kPixelsPerByte * static_cast<int64_t>(bytes)), name,
         ": says that it has ", rows, "x", cols, " pixels, too many for ", bytes, " bytes");
  return {static_cast<int>(rows), static_cast<int>(cols)};
}

// --- JPEG

struct JpegHeader {
  ImageSize size;
  bool cmyk;
};

// A new one for each picture, which costs 0.2 us: after an error TurboJPEG 2.1 would go on in the
// middle of the broken picture, and it keeps tables that a picture without its own would then use.
class Decompressor {
 public:
  Decompressor() : handle_(tjInitDecompress(), &tjDestroy) {
    ensure(handle_ != nullptr, "no memory for a JPEG decompressor");
  }
  operator tjhandle() const { return handle_.get(); }

 private:
  const std::unique_ptr<void, int (*)(tjhandle)> handle_;
};

const unsigned char* as_unsigned(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

JpegHeader jpeg_header(std::string_view bytes, const std::string& name) {
  const Decompressor decompressor;
  int cols = 0, rows = 0, subsampling = -1, colours = -1;
  const int failed = tjDecompressHeader3(decompressor, as_unsigned(bytes), bytes.size(), &cols,
                                         &rows, &subsampling, &colours);
  // TurboJPEG also fails for a way of subsampling that it has no name for, yet decodes it.
  ensure(!failed || (rows > 0 && cols > 0 && colours >= 0), name,
         ": is no whole JPEG image: ", tjGetErrorStr2(decompressor));
  return {checked_size(rows, cols, bytes.size(), name),
          colours == TJCS_CMYK || colours == TJCS_YCCK};
}

// Halves, quarters and eighths alone: their transforms are vectorised, and those between are not
// and take longer than the full size (500x375: 8/8 0.64 ms, 6/8 0.99 ms, 4/8 0.53 ms).
ImageSize scaled_size(const ImageSize& full, const ImageSize& at_least) {
  ImageSize size = full;
  for (const int part : {2, 4, 8}) {
    const ImageSize next{(full.rows + part - 1) / part, (full.cols + part - 1) / part};
    if (next.rows < at_least.rows || next.cols < at_least.cols) break;
    size = next;
  }
  return size;
}

void decompress(std::string_view bytes, const std::string& name, const ImageSize& size, int format,
                uint8_t* out) {
  const Decompressor decompressor;
  const int failed = tjDecompress2(decompressor, as_unsigned(bytes), bytes.size(), out, size.cols,
                                   /*pitch=*/0, size.rows, format, TJFLAG_LIMITSCANS);
  if (!failed) return;
  // Left-over bytes before the end marker (0xd9), which some cameras and editors write, harm
  // nothing.
  const std::string reason = tjGetErrorStr2(decompressor);
  const std::string_view harmless = "extraneous bytes before marker 0xd9";
  ensure(
      tjGetErrorCode(decompressor) == TJERR_WARNING && reason.find(harmless) != std::string::npos,
      name, ": is no whole JPEG image: ", reason);
}

// Gives the image this size, with any pixels. Fills no more than it has grown by.
void resize(RgbImage& image, const ImageSize& size) {
  image.rows = size.rows, image.cols = size.cols;
  image.pixels.resize(size_t{3} * size.rows * size.cols);
}

void decode_jpeg(std::string_view bytes, const std::string& name, const ImageSize& at_least,
                 RgbImage& image) {
  const JpegHeader header = jpeg_header(bytes, name);
  const ImageSize size = scaled_size(header.size, at_least);
  resize(image, size);
  if (!header.cmyk) return decompress(bytes, name, size, TJPF_RGB, image.pixels.data());
  const size_t pixels = static_cast<size_t>(size.rows) * size.cols;
  std::vector<uint8_t> inks(pixels * 4);
  decompress(bytes, name, size, TJPF_CMYK, inks.data());
  for (size_t i = 0; i < pixels; ++i)
    for (size_t c = 0; c < 3; ++c)
      image.pixels[i * 3 + c] = (inks[i * 4 + c] * inks[i * 4 + 3] + 127) / 255;
}

// --- PNG

uint32_t big_endian(std::string_view bytes, size_t at) {
  const unsigned char* b = as_unsigned(bytes) + at;
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
}

ImageSize png_size(std::string_view bytes, const std::string& name) {
  // Behind the 8 bytes of the start: length 13, "IHDR", cols, rows, 5 more bytes, checksum.
  ensure(bytes.size() >= 33 && big_endian(bytes, 8) == 13 && bytes.substr(12, 4) == "IHDR", name,
         ": is no whole PNG image: it does not begin with a header");
  return checked_size(big_endian(bytes, 20), big_endian(bytes, 16), bytes.size(), name);
}

// The chunks that make the RGB picture, every checksum verified. Without the others there is no
// alpha, no text that unpacks to gigabytes, and no colour profile for libpng to complain about on
// the standard error stream.
std::string picture_chunks(std::string_view bytes, const std::string& name) {
  constexpr size_t kFrame = 12;  // length, type and checksum
  std::string kept(kPngStart);
  size_t at = kPngStart.size();
  for (std::string_view type; type != "IEND";) {
    ensure(bytes.size() - at >= kFrame, name,
           ": is no whole PNG image: it ends before its end chunk");
    const size_t length = big_endian(bytes, at);
    ensure(length <= bytes.size() - at - kFrame, name, ": is no whole PNG image: a chunk of ",
           length, " bytes begins at byte ", at, " of ", bytes.size());
    type = bytes.substr(at + 4, 4);
    const uint32_t sum = crc32(0, as_unsigned(bytes) + at + 4, length + 4);
    ensure(sum == big_endian(bytes, at + 8 + length), name,
           ": is damaged: the checksum of the chunk at byte ", at, " differs");
    if (type == "IHDR" || type == "PLTE" || type == "IDAT" || type == "IEND")
      kept += bytes.substr(at, length + kFrame);
    at += length + kFrame;
  }
  return kept;
}

cv::Mat decode_with_opencv(const std::string& png, const std::string& name) {
  const cv::Mat encoded(1, png.size(), CV_8UC1, const_cast<char*>(png.data()));
  try {
    return cv::imdecode(encoded, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
  } catch (const cv::Exception& error) {
    throw std::runtime_error(name + ": is no whole PNG image: " + error.err);
  }
}

void decode_png(std::string_view bytes, const std::string& name, RgbImage& image) {
  const ImageSize size = png_size(bytes, name);
  const cv::Mat decoded = decode_with_opencv(picture_chunks(bytes, name), name);
  ensure(decoded.rows == size.rows && decoded.cols == size.cols && decoded.type() == CV_8UC3, name,
         ": is no whole PNG image: its pixels cannot be unpacked");
  resize(image, size);
  cv::Mat rgb(size.rows, size.cols, CV_8UC3, image.pixels.data());
  cv::cvtColor(decoded, rgb, cv::COLOR_BGR2RGB);
}

[[noreturn]] void refuse(std::string_view bytes, const std::string& name) {
  throw std::runtime_error(join(name, ": is neither a JPEG nor a PNG image (", bytes.size(),
                                " bytes without the start of either)"));
}

}  // namespace

ImageSize image_size(std::string_view bytes, const std::string& name) {
  if (starts_with(bytes, kJpegStart)) return jpeg_header(bytes, name).size;
  if (starts_with(bytes, kPngStart)) return png_size(bytes, name);
  refuse(bytes, name);
}

void decode_image(std::string_view bytes, const std::string& name, ImageSize at_least,
                  RgbImage& image) {
  if (starts_with(bytes, kJpegStart)) return decode_jpeg(bytes, name, at_least, image);
  if (starts_with(bytes, kPngStart)) return decode_png(bytes, name, image);
  refuse(bytes, name);
}

RgbImage decode_image(std::string_view bytes, const std::string& name, ImageSize at_least) {
  RgbImage image;
  decode_image(bytes, name, at_least, image);
  return image;
}

std::string read_image_bytes(const std::string& path) { return read_file(path, kMostBytes); }

RgbImage read_image(const std::string& path) { return decode_image(read_image_bytes(path), path); }

}  // namespace translution
