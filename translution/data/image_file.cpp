#include "translution/data/image_file.h"

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <opencv2/imgcodecs.hpp>
#include <utility>

// After <cstdio>: jerror.h needs it.
#include <jerror.h>
#include <jpeglib.h>
#include <zlib.h>

#include "translution/core/error.h"
#include "translution/data/orientation.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kMaxPixels = 100'000'000;
constexpr int kMaxSide = 65500;
constexpr int kMaxScans = 500;
constexpr int64_t kMaxBytes = int64_t{1} << 28;
// A file of any size may declare an image that decodes within 64 MB (progressive CMYK takes 15
// bytes per pixel). Above that, only blank images have less than one byte per 100 pixels.
constexpr int64_t kPixelsOfAnyFile = 4'000'000, kPixelsPerByte = 100;

constexpr std::string_view kJpegSignature = "\xFF\xD8\xFF";
constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1A\n";

bool starts_with(std::string_view bytes, std::string_view start) {
  return bytes.substr(0, start.size()) == start;
}

ImageSize checked_size(int64_t rows, int64_t cols, size_t bytes, const std::string& name) {
  ensure(rows > 0 && cols > 0 && rows <= kMaxSide && cols <= kMaxSide, name, ": declares ", rows,
         "x", cols, " pixels, expected sides from 1 to ", kMaxSide);
  const int64_t pixels = rows * cols;
  ensure(pixels <= kMaxPixels, name, ": has ", rows, "x", cols, " pixels, expected at most ",
         kMaxPixels);
  ensure(pixels <= std::max(kPixelsOfAnyFile, kPixelsPerByte * static_cast<int64_t>(bytes)), name,
         ": declares ", rows, "x", cols, " pixels, too many for ", bytes, " bytes");
  return {static_cast<int>(rows), static_cast<int>(cols)};
}

// Sets the size; the pixel values are unspecified. Only bytes by which the buffer grows are filled.
void resize(RgbImage& image, const ImageSize& size) {
  image.rows = size.rows, image.cols = size.cols;
  image.pixels.resize(size_t{3} * size.rows * size.cols);
}

const unsigned char* as_unsigned(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// --- JPEG

struct Span {
  int begin, end;
};

// The pixels that [begin, begin + length) touches when `full` pixels are scaled to `scaled` pixels.
Span touched_pixels(double begin, double length, int full, int scaled) {
  const double scale = static_cast<double>(scaled) / full;
  const double first = std::clamp(std::floor(begin * scale), 0.0, scaled - 1.0);
  const double end = std::clamp(std::ceil((begin + length) * scale), first + 1, double(scaled));
  return {static_cast<int>(first), static_cast<int>(end)};
}

// Decodes one JPEG. libjpeg reports errors with longjmp, which skips destructors: functions called
// through `attempt` must have no local objects with destructors.
class JpegReader {
 public:
  JpegReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}
  JpegReader(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info_); }

  ImageSize read_header();
  /// The TIFF structure of the EXIF segment; empty if there is none. Valid until `read`.
  std::string_view exif() const;
  void read(int divisor, const Box& box, ImagePart& part);

 private:
  static JpegReader& reader_of(j_common_ptr info) {
    return *static_cast<JpegReader*>(info->client_data);
  }
  [[noreturn]] static void fail(j_common_ptr info);
  static void warn(j_common_ptr info, int level);
  bool warns_of_damage() const;
  static void count_scans(j_common_ptr info);

  template <typename Step>
  void attempt(const Step& step) {
    ensure(succeeds(step), name_, ": is not a complete JPEG image: ", reason_);
  }
  template <typename Step>
  __attribute__((noinline)) bool succeeds(const Step& step) {
    if (setjmp(on_failure_) != 0) return false;
    step();
    return true;
  }

  void open();
  void begin_decoding(int divisor);
  void crop(Span* rows, Span* cols);
  void read_rows(const Span& rows, uint8_t* out);
  void read_row(JSAMPROW inks, uint8_t* out);
  bool is_cmyk() const { return info_.out_color_space == JCS_CMYK; }

  const std::string_view bytes_;
  const std::string& name_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  jmp_buf on_failure_{};
  char reason_[JMSG_LENGTH_MAX] = "";
};

void JpegReader::fail(j_common_ptr info) {
  info->err->format_message(info, reader_of(info).reason_);
  std::longjmp(reader_of(info).on_failure_, 1);
}

void JpegReader::warn(j_common_ptr info, int level) {
  if (level < 0 && reader_of(info).warns_of_damage()) fail(info);
}

// Some cameras and editors write headers that libjpeg warns about although no pixel is affected:
// unknown versions, values that a sequential scan ignores, and extra bytes between segments before
// the first scan or before the end marker.
bool JpegReader::warns_of_damage() const {
  switch (errors_.msg_code) {
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_NOT_SEQUENTIAL:
      return false;
    case JWRN_EXTRANEOUS_DATA:
      return info_.input_scan_number > 0 && errors_.msg_parm.i[1] != JPEG_EOI;
    default:
      return true;
  }
}

// Each scan is a pass over the whole image, and a small file can have very many of them.
void JpegReader::count_scans(j_common_ptr info) {
  JpegReader& reader = reader_of(info);
  if (reader.info_.input_scan_number <= kMaxScans) return;
  std::snprintf(reader.reason_, sizeof reader.reason_, "it has more than %d scans", kMaxScans);
  std::longjmp(reader.on_failure_, 1);
}

ImageSize JpegReader::read_header() {
  info_.err = jpeg_std_error(&errors_);
  info_.client_data = this;
  errors_.error_exit = &fail;
  errors_.emit_message = &warn;
  progress_.progress_monitor = &count_scans;
  attempt([this] { open(); });
  return checked_size(info_.image_height, info_.image_width, bytes_.size(), name_);
}

void JpegReader::open() {
  jpeg_create_decompress(&info_);
  info_.progress = &progress_;
  jpeg_mem_src(&info_, as_unsigned(bytes_), bytes_.size());
  jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&info_, TRUE);
}

std::string_view JpegReader::exif() const {
  constexpr std::string_view kExifStart{"Exif\0\0", 6};
  for (const auto* marker = info_.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (starts_with(data, kExifStart)) return data.substr(kExifStart.size());
  }
  return {};
}

void JpegReader::read(int divisor, const Box& box, ImagePart& part) {
  attempt([this, divisor] { begin_decoding(divisor); });
  const int height = info_.output_height, width = info_.output_width;
  part.whole = {height, width};
  Span rows = touched_pixels(box.top, box.rows, info_.image_height, height);
  Span cols = touched_pixels(box.left, box.cols, info_.image_width, width);
  attempt([this, &rows, &cols] { crop(&rows, &cols); });
  part.top = rows.begin, part.left = cols.begin;
  resize(part.image, {rows.end - rows.begin, cols.end - cols.begin});
  attempt([&] { read_rows(rows, part.image.pixels.data()); });
}

void JpegReader::begin_decoding(int divisor) {
  const J_COLOR_SPACE stored = info_.jpeg_color_space;
  info_.out_color_space = stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK : JCS_RGB;
  info_.scale_num = 1, info_.scale_denom = divisor;
  jpeg_start_decompress(&info_);
}

// Enlarges the part to one that libjpeg 2.1 decodes exactly. Rows are aligned to blocks that are
// transformed together: skipping from within a block can change its rows. At the outermost columns
// chroma is upsampled from one side only, so kMargin columns are added. An image in several scans
// is decoded whole: if the last scans are missing, each block depends on its neighbours.
void JpegReader::crop(Span* rows, Span* cols) {
  constexpr int kMargin = 2;
  const int height = info_.output_height, width = info_.output_width;
  if (jpeg_has_multiple_scans(&info_)) {
    *rows = {0, height}, *cols = {0, width};
    return;
  }
  const int block = DCTSIZE * info_.max_v_samp_factor / static_cast<int>(info_.scale_denom);
  rows->begin -= rows->begin % block;
  rows->end = std::min((rows->end + block - 1) / block * block, height);
  JDIMENSION left = std::max(cols->begin - kMargin, 0);
  JDIMENSION count = std::min(cols->end + kMargin, width) - left;
  jpeg_crop_scanline(&info_, &left, &count);
  *cols = {static_cast<int>(left), static_cast<int>(left + count)};
}

void JpegReader::read_rows(const Span& rows, uint8_t* out) {
  const JDIMENSION values = info_.output_width * info_.output_components;
  JSAMPROW spare =
      *info_.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&info_), JPOOL_IMAGE, values, 1);
  jpeg_skip_scanlines(&info_, rows.begin);
  for (int row = rows.begin; row < rows.end; ++row, out += size_t{3} * info_.output_width)
    read_row(spare, out);
  // Read the last row instead of skipping it: after a skip to the end libjpeg would leave the rest
  // of the file unread.
  const JDIMENSION below = info_.output_height - rows.end;
  if (below > 1) jpeg_skip_scanlines(&info_, below - 1);
  if (below > 0) jpeg_read_scanlines(&info_, &spare, 1);
  jpeg_finish_decompress(&info_);
}

void JpegReader::read_row(JSAMPROW inks, uint8_t* out) {
  jpeg_read_scanlines(&info_, is_cmyk() ? &inks : &out, 1);
  if (!is_cmyk()) return;
  for (JDIMENSION i = 0; i < info_.output_width; ++i)
    for (JDIMENSION c = 0; c < 3; ++c)
      out[i * 3 + c] = (inks[i * 4 + c] * inks[i * 4 + 3] + 127) / 255;
}

// Only halves, quarters and eighths: libjpeg vectorises these transforms. The scales between them
// are slower than full size (500x375: 8/8 0.64 ms, 6/8 0.99 ms, 4/8 0.53 ms).
int divisor_for(const ImageSize& full, const ImageSize& at_least) {
  int divisor = 1;
  for (const int next : {2, 4, 8}) {
    const int rows = (full.rows + next - 1) / next, cols = (full.cols + next - 1) / next;
    if (rows < at_least.rows || cols < at_least.cols) break;
    divisor = next;
  }
  return divisor;
}

ImageSize jpeg_size(std::string_view bytes, const std::string& name) {
  JpegReader reader(bytes, name);
  const ImageSize stored = reader.read_header();
  return orientation_of(reader.exif()).size(stored);
}

void decode_jpeg(std::string_view bytes, const std::string& name, const ImageSize& at_least,
                 const Box& box, ImagePart& part) {
  JpegReader reader(bytes, name);
  const ImageSize full = reader.read_header();
  const Orientation orientation = orientation_of(reader.exif());
  reader.read(divisor_for(full, orientation.size(at_least)), orientation.stored_box(box, full),
              part);
  orientation.apply(part);
}

// --- PNG

uint32_t big_endian(std::string_view bytes, size_t at) {
  const unsigned char* b = as_unsigned(bytes) + at;
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
}

ImageSize stored_png_size(std::string_view bytes, const std::string& name) {
  // After the 8 bytes of the signature: length 13, "IHDR", cols, rows, 5 more bytes, checksum.
  ensure(bytes.size() >= 33 && big_endian(bytes, 8) == 13 && bytes.substr(12, 4) == "IHDR", name,
         ": is not a complete PNG image: the header is missing");
  return checked_size(big_endian(bytes, 20), big_endian(bytes, 16), bytes.size(), name);
}

struct PngChunk {
  size_t at;  ///< byte offset in the file
  std::string_view type, data, whole;
};

template <typename Visit>
void for_each_chunk(std::string_view bytes, const std::string& name, const Visit& visit) {
  constexpr size_t kFrame = 12;  // length, type and checksum
  size_t at = kPngSignature.size();
  for (std::string_view type; type != "IEND";) {
    ensure(bytes.size() - at >= kFrame, name,
           ": is not a complete PNG image: the end chunk is missing");
    const size_t length = big_endian(bytes, at);
    ensure(length <= bytes.size() - at - kFrame, name,
           ": is not a complete PNG image: the chunk at byte ", at, " has ", length,
           " bytes, the file has ", bytes.size());
    type = bytes.substr(at + 4, 4);
    visit(PngChunk{at, type, bytes.substr(at + 8, length), bytes.substr(at, length + kFrame)});
    at += length + kFrame;
  }
}

Orientation png_orientation(std::string_view bytes, const std::string& name) {
  std::string_view exif;
  for_each_chunk(bytes, name, [&](const PngChunk& chunk) {
    if (chunk.type == "eXIf" && exif.empty()) exif = chunk.data;
  });
  return orientation_of(exif);
}

ImageSize png_size(std::string_view bytes, const std::string& name) {
  const ImageSize stored = stored_png_size(bytes, name);
  return png_orientation(bytes, name).size(stored);
}

// The file with only the chunks of the RGB pixels; verifies the checksum of every chunk. Dropping
// the others removes alpha, compressed text that expands to gigabytes, and colour profiles that
// libpng complains about on stderr.
std::string pixel_chunks(std::string_view bytes, const std::string& name) {
  std::string result(kPngSignature);
  for_each_chunk(bytes, name, [&](const PngChunk& chunk) {
    const uint32_t sum = crc32(0, as_unsigned(chunk.type), 4 + chunk.data.size());
    ensure(sum == big_endian(chunk.whole, chunk.whole.size() - 4), name,
           ": is damaged: checksum mismatch in the chunk at byte ", chunk.at);
    for (const char* type : {"IHDR", "PLTE", "IDAT", "IEND"})
      if (chunk.type == type) result += chunk.whole;
  });
  return result;
}

cv::Mat decode_with_opencv(const std::string& png, const std::string& name) {
  const cv::Mat encoded(1, png.size(), CV_8UC1, const_cast<char*>(png.data()));
  try {
    return cv::imdecode(encoded, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
  } catch (const cv::Exception& error) {
    throw std::runtime_error(name + ": is not a complete PNG image: " + error.err);
  }
}

void decode_png(std::string_view bytes, const std::string& name, ImagePart& part) {
  const ImageSize size = stored_png_size(bytes, name);
  const cv::Mat decoded = decode_with_opencv(pixel_chunks(bytes, name), name);
  ensure(decoded.rows == size.rows && decoded.cols == size.cols && decoded.type() == CV_8UC3, name,
         ": is not a complete PNG image: its pixels cannot be decoded");
  part.whole = size, part.top = part.left = 0;
  resize(part.image, size);
  cv::Mat rgb(size.rows, size.cols, CV_8UC3, part.image.pixels.data());
  const int swapped[] = {0, 2, 1, 1, 2, 0};  // cvtColor would start threads of its own
  cv::mixChannels(&decoded, 1, &rgb, 1, swapped, 3);
  png_orientation(bytes, name).apply(part);
}

[[noreturn]] void refuse(std::string_view bytes, const std::string& name) {
  throw std::runtime_error(join(name, ": is neither a JPEG nor a PNG image (", bytes.size(),
                                " bytes without a known signature)"));
}

}  // namespace

ImageSize image_size(std::string_view bytes, const std::string& name) {
  if (starts_with(bytes, kJpegSignature)) return jpeg_size(bytes, name);
  if (starts_with(bytes, kPngSignature)) return png_size(bytes, name);
  refuse(bytes, name);
}

void decode_part(std::string_view bytes, const std::string& name, ImageSize at_least,
                 const Box& box, ImagePart& part) {
  if (starts_with(bytes, kJpegSignature))
    decode_jpeg(bytes, name, at_least, box, part);
  else if (starts_with(bytes, kPngSignature))
    decode_png(bytes, name, part);
  else
    refuse(bytes, name);
}

RgbImage decode_image(std::string_view bytes, const std::string& name, ImageSize at_least) {
  ImagePart all;
  decode_part(bytes, name, at_least, {0, 0, kMaxSide, kMaxSide}, all);
  return std::move(all.image);
}

std::string read_image_bytes(const std::string& path) { return read_file(path, kMaxBytes); }

RgbImage read_image(const std::string& path) { return decode_image(read_image_bytes(path), path); }

}  // namespace translution
