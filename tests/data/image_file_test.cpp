#include "translution/data/image_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "tests/data/pictures.h"
#include "translution/core/random.h"

namespace translution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<int> rgb(const RgbImage& image, int row, int col) {
  const uint8_t* p = pixel(image, row, col);
  return {p[0], p[1], p[2]};
}

// Smooth enough for JPEG to be nearly lossless.
RgbImage soft_image(int rows, int cols) {
  return make_image(rows, cols,
                    [](int row, int col, int c) { return 60 + row * (c + 1) / 2 + col; });
}

// The message that decoding throws; checks that it is one line and begins with the name.
std::string refusal(const std::string& bytes) {
  const std::string message = message_of([&] { decode_image(bytes, "the.file"); });
  if (!message.empty()) {
    EXPECT_THAT(message, StartsWith("the.file: "));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  return message;
}

TEST(DecodeImage, JpegIsTheImageWithinRounding) {
  const RgbImage image = soft_image(31, 45);
  const RgbImage decoded = decode_image(to_jpeg(image, Chroma::full, 100), "a.jpg");
  ASSERT_EQ(decoded.rows, 31);
  ASSERT_EQ(decoded.cols, 45);
  ASSERT_EQ(decoded.pixels.size(), image.pixels.size());
  for (size_t i = 0; i < image.pixels.size(); ++i)
    ASSERT_NEAR(decoded.pixels[i], image.pixels[i], 3) << i;
}

TEST(DecodeImage, GreyJpegHasThreeEqualChannels) {
  const RgbImage decoded = decode_image(to_jpeg(soft_image(20, 30), Chroma::none), "a.jpg");
  for (size_t i = 0; i < decoded.pixels.size(); i += 3) {
    ASSERT_EQ(decoded.pixels[i], decoded.pixels[i + 1]);
    ASSERT_EQ(decoded.pixels[i], decoded.pixels[i + 2]);
  }
  EXPECT_GT(pixel(decoded, 19, 29)[0], pixel(decoded, 0, 0)[0] + 30);
}

TEST(DecodeImage, CmykJpegIsEachInkTimesBlack) {
  // Adobe stores inverted inks: 200 of 255 with black at 128 of 255 gives 100.
  const RgbImage decoded = decode_image(cmyk_jpeg(9, 10, {200, 100, 0, 128}), "a.jpg");
  EXPECT_THAT(rgb(decoded, 4, 5), ElementsAre(100, 50, 0));
  EXPECT_THAT(rgb(decode_image(cmyk_jpeg(9, 10, {255, 255, 255, 255}), "a"), 0, 0),
              ElementsAre(255, 255, 255));
}

TEST(DecodeImage, JpegMayBeScaledDownButNotBelowAtLeast) {
  const std::string jpeg = to_jpeg(flat_image(301, 403, 90), Chroma::quarter);
  const auto size = [&](int rows, int cols) {
    const RgbImage image = decode_image(jpeg, "a.jpg", {rows, cols});
    EXPECT_THAT(rgb(image, image.rows / 2, image.cols / 2), ElementsAre(90, 90, 90));
    return std::vector<int>{image.rows, image.cols};
  };
  EXPECT_THAT(size(302, 403), ElementsAre(301, 403));
  EXPECT_THAT(size(152, 100), ElementsAre(301, 403));
  EXPECT_THAT(size(100, 203), ElementsAre(301, 403));
  EXPECT_THAT(size(151, 202), ElementsAre(151, 202));
  EXPECT_THAT(size(76, 101), ElementsAre(76, 101));
  EXPECT_THAT(size(1, 1), ElementsAre(38, 51));
  const ImageSize full = image_size(jpeg, "a.jpg");
  EXPECT_THAT((std::vector<int>{full.rows, full.cols}), ElementsAre(301, 403));
}

TEST(DecodeImage, JpegWithUnusualSubsamplingIsRead) {
  std::string jpeg = to_jpeg(flat_image(32, 32, 77), Chroma::quarter);
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_EQ(jpeg[frame + 11], 0x22);
  jpeg[frame + 11] = 0x14;  // a column of four blocks instead of two by two
  EXPECT_THAT(rgb(decode_image(jpeg, "a.jpg"), 31, 31), ElementsAre(77, 77, 77));
}

TEST(DecodeImage, WarningsThatAffectNoPixelsAreIgnored) {
  const std::string jpeg = to_jpeg(soft_image(20, 30), Chroma::full);
  const RgbImage expected = decode_image(jpeg, "a.jpg");
  const auto files = harmless_changes(jpeg);
  ASSERT_EQ(files.size(), 5u);
  for (size_t file = 0; file < files.size(); ++file) {
    ASSERT_NE(files[file], jpeg) << file;
    EXPECT_EQ(refusal(files[file]), "") << file;
    EXPECT_EQ(decode_image(files[file], "a.jpg").pixels, expected.pixels) << file;
  }
}

TEST(DecodeImage, AppliesExifOrientation) {
  const RgbImage image = varied_image(23, 37);
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool little_endian : {true, false}) {
      const std::string exif = exif_with(orientation, little_endian);
      const RgbImage stored = stored_for(image, orientation);
      std::string png = encode_png(stored);
      png.insert(33, png_chunk("eXIf", exif));  // after the header
      EXPECT_EQ(decode_image(png, "a.png").pixels, image.pixels) << orientation;
      const std::string jpeg = to_jpeg(stored, Chroma::full);
      const RgbImage shown = decode_image(with_exif(jpeg, exif), "a.jpg");
      EXPECT_EQ(stored_for(shown, orientation).pixels, decode_image(jpeg, "a.jpg").pixels)
          << orientation;
      for (const std::string& file : {png, with_exif(jpeg, exif)}) {
        const ImageSize size = image_size(file, "a");
        EXPECT_THAT((std::vector<int>{size.rows, size.cols}), ElementsAre(23, 37)) << orientation;
      }
    }
}

TEST(DecodeImage, IgnoresInvalidExif) {
  const std::string jpeg = to_jpeg(varied_image(23, 37), Chroma::full);
  const RgbImage expected = decode_image(jpeg, "a.jpg");
  const std::string exif = exif_with(6);
  std::vector<std::string> broken{exif_with(0), exif_with(9), exif_with(65535), "", "II", "XX"};
  for (size_t size = 0; size < 30; ++size) broken.push_back(exif.substr(0, size));
  broken.push_back("II*\0\xFF\xFF\xFF\xFF");  // the directory is beyond the end
  for (const std::string& one : broken)
    EXPECT_EQ(decode_image(with_exif(jpeg, one), "a.jpg").pixels, expected.pixels);
}

// One file for each kind of JPEG that is decoded differently.
std::vector<std::string> jpegs_of(const RgbImage& image) {
  std::vector<std::string> files;
  for (const bool progressive : {false, true})
    for (const Chroma chroma :
         {Chroma::full, Chroma::half_cols, Chroma::half_rows, Chroma::quarter, Chroma::none})
      files.push_back(to_jpeg(image, chroma, 90, progressive));
  return files;
}

// Checks that the pixels of `part` that the box touches equal those of `whole`.
void expect_same(const ImagePart& part, const RgbImage& whole, double scale, const Box& box) {
  const int top = box.top * scale, left = box.left * scale;
  const int bottom = std::min<int>(whole.rows, std::ceil((box.top + box.rows) * scale));
  const int right = std::min<int>(whole.cols, std::ceil((box.left + box.cols) * scale));
  ASSERT_EQ(part.whole.rows, whole.rows);
  ASSERT_EQ(part.whole.cols, whole.cols);
  ASSERT_TRUE(part.top <= top && part.top + part.image.rows >= bottom);
  ASSERT_TRUE(part.left <= left && part.left + part.image.cols >= right);
  for (int row = top; row < bottom; ++row)
    ASSERT_TRUE(std::equal(pixel(whole, row, left), pixel(whole, row, left) + 3 * (right - left),
                           pixel(part.image, row - part.top, left - part.left)))
        << "row " << row << ", cols " << left << " to " << right;
}

TEST(DecodePart, HasThePixelsOfTheWholeImage) {
  for (const auto& [rows, cols] : {std::pair{104, 136}, {128, 160}, {40, 200}, {8, 16}}) {
    const auto files = jpegs_of(noise_image(rows, cols));
    for (size_t file = 0; file < files.size(); ++file)
      for (const int divisor : {1, 2, 4, 8}) {
        const ImageSize at_least{rows / divisor, cols / divisor};
        const RgbImage whole = decode_image(files[file], "a.jpg", at_least);
        ASSERT_EQ(whole.rows, at_least.rows);
        Random random({file});
        for (int trial = 0; trial < 60; ++trial) {
          const double height = 1 + random.below(rows), width = 1 + random.below(cols);
          const Box box{static_cast<double>(random.below(rows - height + 1)),
                        static_cast<double>(random.below(cols - width + 1)), height, width};
          ImagePart part;
          decode_part(files[file], "a.jpg", at_least, box, part);
          expect_same(part, whole, 1.0 / divisor, box);
          ASSERT_FALSE(HasFatalFailure())
              << rows << "x" << cols << ", file " << file << ", divisor " << divisor << ", box "
              << box.top << " " << box.left << " " << box.rows << " " << box.cols;
        }
      }
  }
}

TEST(DecodePart, HasThePixelsOfTheWholeImageInEveryOrientation) {
  const std::string jpeg = to_jpeg(noise_image(104, 136), Chroma::quarter);
  for (int orientation = 2; orientation <= 8; ++orientation) {
    const std::string file = with_exif(jpeg, exif_with(orientation));
    const ImageSize full = image_size(file, "a.jpg");
    for (const int divisor : {1, 2, 4, 8}) {
      const ImageSize at_least{full.rows / divisor, full.cols / divisor};
      const RgbImage whole = decode_image(file, "a.jpg", at_least);
      ASSERT_EQ(whole.rows, at_least.rows);
      Random random({static_cast<uint64_t>(orientation)});
      for (int trial = 0; trial < 30; ++trial) {
        const double height = 1 + random.below(full.rows), width = 1 + random.below(full.cols);
        const Box box{static_cast<double>(random.below(full.rows - height + 1)),
                      static_cast<double>(random.below(full.cols - width + 1)), height, width};
        ImagePart part;
        decode_part(file, "a.jpg", at_least, box, part);
        expect_same(part, whole, 1.0 / divisor, box);
        ASSERT_FALSE(HasFatalFailure()) << "orientation " << orientation << ", 1/" << divisor;
      }
    }
  }
}

TEST(DecodePart, IsNoLargerThanItsBlocksNeed) {
  ImagePart part;
  decode_part(to_jpeg(noise_image(160, 160), Chroma::quarter), "a.jpg", kFullSize, {50, 66, 40, 20},
              part);
  EXPECT_EQ(part.top, 48);
  EXPECT_EQ(part.image.rows, 48);
  EXPECT_EQ(part.left, 64);
  EXPECT_EQ(part.image.cols, 86 + 2 - 64);
}

TEST(DecodePart, ConvertsCmykAsForTheWholeImage) {
  ImagePart part;
  decode_part(cmyk_jpeg(50, 60, {200, 100, 0, 128}), "a.jpg", kFullSize, {20, 30, 9, 9}, part);
  EXPECT_LT(part.image.cols, 60);
  EXPECT_THAT(rgb(part.image, 0, 20), ElementsAre(100, 50, 0));
}

TEST(DecodeImage, PngIsExactWithAnyFileName) {
  const RgbImage image = varied_image(23, 37);
  EXPECT_EQ(decode_image(encode_png(image), "a.jpg").pixels, image.pixels);
}

TEST(DecodeImage, PngWithPaletteGreyDepthOrAlphaBecomesRgb) {
  RawPng png{2, 2, 8, 3, {{1, 0}, {2, 1}}, std::string("\x01\x02\x03\x04\x05\x06\xFF\x00\x80", 9),
             ""};
  RgbImage image = decode_image(png.bytes(), "a.png");
  EXPECT_THAT(rgb(image, 0, 0), ElementsAre(4, 5, 6));
  EXPECT_THAT(rgb(image, 1, 0), ElementsAre(255, 0, 128));

  png = {1, 9, 1, 0, {"\xA0\x80"}, "", ""};  // 1-bit grey: 10100000 1
  image = decode_image(png.bytes(), "a.png");
  EXPECT_THAT(rgb(image, 0, 0), ElementsAre(255, 255, 255));
  EXPECT_THAT(rgb(image, 0, 1), ElementsAre(0, 0, 0));
  EXPECT_THAT(rgb(image, 0, 8), ElementsAre(255, 255, 255));

  png = {1, 1, 16, 2, {std::string("\x10\x00\x20\x00\x30\x00", 6)}, "", ""};
  EXPECT_THAT(rgb(decode_image(png.bytes(), "a.png"), 0, 0), ElementsAre(16, 32, 48));

  png = {1, 2, 8, 6, {std::string("\x0A\x14\x1E\x00\x28\x32\x3C\xFF", 8)}, "", ""};
  image = decode_image(png.bytes(), "a.png");
  EXPECT_THAT(rgb(image, 0, 0), ElementsAre(10, 20, 30));
  EXPECT_THAT(rgb(image, 0, 1), ElementsAre(40, 50, 60));

  png = {1, 1, 8, 4, {std::string("\x63\x00", 2)}, "", ""};
  EXPECT_THAT(rgb(decode_image(png.bytes(), "a.png"), 0, 0), ElementsAre(99, 99, 99));
}

TEST(DecodeImage, IgnoresAncillaryChunksOfAPng) {
  RawPng png{1, 1, 8, 2, {"abc"}, "", png_chunk("iCCP", "nonsense") + png_chunk("tRNS", "ab")};
  EXPECT_THAT(rgb(decode_image(png.bytes(), "a.png"), 0, 0), ElementsAre('a', 'b', 'c'));
}

TEST(ReadImage, NamesAFileThatIsMissingOrNotAnImage) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/none.jpg";
  EXPECT_THAT(message_of([&] { read_image(missing); }), StartsWith(missing + ": cannot be opened"));
  const std::string text = folder.write("text.jpg", "This is no picture.\n");
  EXPECT_EQ(message_of([&] { read_image(text); }),
            text + ": is neither a JPEG nor a PNG image (20 bytes without a known signature)");
  const RgbImage image = varied_image(3, 5);
  EXPECT_EQ(read_image(folder.write("good.png", encode_png(image))).pixels, image.pixels);
}

TEST(DamagedImage, IsRefusedIfTruncatedAtAnyByte) {
  const RgbImage image = soft_image(17, 19);
  for (const std::string& whole :
       {to_jpeg(image, Chroma::quarter), to_jpeg(image, Chroma::full, 90, /*progressive=*/true),
        cmyk_jpeg(9, 9, {1, 2, 3, 4}), encode_png(image)}) {
    ASSERT_EQ(refusal(whole), "");
    for (size_t size = 0; size < whole.size(); ++size)
      ASSERT_NE(refusal(whole.substr(0, size)), "") << size << " of " << whole.size() << " bytes";
  }
}

TEST(DamagedImage, PngWithAnyBitFlippedIsRefused) {
  const std::string png = encode_png(varied_image(5, 7));
  for (size_t bit = 0; bit < png.size() * 8; ++bit) {
    std::string flipped = png;
    flipped[bit / 8] ^= 1 << bit % 8;
    ASSERT_NE(refusal(flipped), "") << "bit " << bit;
  }
}

TEST(DamagedImage, JpegWithAnyBitFlippedIsRefusedOrHasTheSizeOfItsHeader) {
  int refused = 0;
  for (const bool progressive : {false, true}) {
    const std::string jpeg = to_jpeg(soft_image(17, 19), Chroma::quarter, 90, progressive);
    for (size_t bit = 0; bit < jpeg.size() * 8; ++bit) {
      std::string flipped = jpeg;
      flipped[bit / 8] ^= 1 << bit % 8;
      if (!refusal(flipped).empty()) {
        ++refused;
        continue;
      }
      const ImageSize size = image_size(flipped, "a.jpg");
      ASSERT_EQ(decode_image(flipped, "a.jpg").pixels.size(), size_t{3} * size.rows * size.cols);
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(DamagedImage, IsRefusedForTheSameReasonWhenDecodingAPart) {
  int refused = 0;
  for (const Chroma chroma : {Chroma::quarter, Chroma::half_cols, Chroma::none}) {
    const std::string jpeg = to_jpeg(soft_image(50, 70), chroma);
    const auto part_refusal = [](const std::string& bytes, const Box& box) {
      ImagePart part;
      return message_of([&] { decode_part(bytes, "the.file", kFullSize, box, part); });
    };
    const auto check = [&](const std::string& damaged) {
      const std::string whole = refusal(damaged);
      refused += !whole.empty();
      ASSERT_EQ(part_refusal(damaged, {0, 0, 4, 4}), whole);
      ASSERT_EQ(part_refusal(damaged, {30, 40, 5, 6}), whole);
    };
    for (size_t size = 2; size < jpeg.size(); ++size) check(jpeg.substr(0, size));
    for (size_t byte = 2; byte < jpeg.size(); ++byte)
      for (const int change : {0x01, 0x40, 0xFF}) {
        std::string damaged = jpeg;
        damaged[byte] ^= change;
        check(damaged);
      }
  }
  EXPECT_GT(refused, 2000);
}

TEST(DamagedImage, JpegWithMoreThan500ScansIsRefused) {
  EXPECT_EQ(refusal(jpeg_in_scans(500)), "");
  EXPECT_THAT(refusal(jpeg_in_scans(501)), HasSubstr("more than 500 scans"));
}

TEST(DamagedImage, DoesNotAffectTheNextImage) {
  const std::string jpeg = to_jpeg(soft_image(17, 19), Chroma::quarter);
  const RgbImage expected = decode_image(jpeg, "a.jpg");
  for (size_t byte = 2; byte < jpeg.size(); ++byte) {
    std::string damaged = jpeg;
    damaged[byte] ^= 0x10;
    refusal(damaged);
    ASSERT_EQ(decode_image(jpeg, "a.jpg").pixels, expected.pixels) << "after byte " << byte;
  }
}

TEST(DamagedImage, JpegWithoutTablesDoesNotReuseThoseOfThePreviousImage) {
  const std::string jpeg = to_jpeg(soft_image(17, 19), Chroma::quarter);
  std::string without = jpeg;
  for (size_t at; (at = without.find("\xFF\xDB")) != std::string::npos;)
    without[at + 1] = '\xE5';  // an application segment, which is skipped
  ASSERT_EQ(refusal(jpeg), "");
  EXPECT_THAT(refusal(without), HasSubstr("Quantization table 0x00 was not defined"));
}

TEST(DamagedImage, ZeroBytesAndEmptyFilesAreRefused) {
  for (const std::string start : {"", "\xFF\xD8\xFF", "\x89PNG\r\n\x1A\n"})
    for (const size_t zeros : {0, 1, 7, 8, 25, 26, 1000})
      EXPECT_NE(refusal(start + std::string(zeros, '\0')), "") << zeros;
}

TEST(DamagedImage, PngWithAWrongSizeInItsHeaderIsRefused) {
  RawPng png{3, 3, 8, 2, {"abcabcabc", "abcabcabc", "abcabcabc"}, "", ""};
  ASSERT_EQ(refusal(png.bytes()), "");
  const auto with_size = [&](uint32_t rows, uint32_t cols) {
    png.rows = rows;
    png.cols = cols;
    return refusal(png.bytes());
  };
  EXPECT_THAT(with_size(0, 3), HasSubstr("0x3 pixels"));
  EXPECT_THAT(with_size(3, 0x80000000u), HasSubstr("3x2147483648 pixels"));
  EXPECT_THAT(with_size(0xFFFFFFFFu, 0xFFFFFFFFu), HasSubstr("4294967295x4294967295 pixels"));
  EXPECT_THAT(with_size(65500, 65500), HasSubstr("expected at most 100000000"));
  EXPECT_THAT(with_size(5000, 5000), HasSubstr("5000x5000 pixels, too many for"));
  EXPECT_THAT(with_size(2000, 2000), HasSubstr("cannot be decoded"));
  EXPECT_THAT(with_size(4, 3), HasSubstr("cannot be decoded"));
}

std::string with_jpeg_size(std::string jpeg, int rows, int cols) {
  size_t frame = jpeg.find("\xFF\xC0");
  if (frame == std::string::npos) frame = jpeg.find("\xFF\xC2");
  jpeg[frame + 5] = static_cast<char>(rows >> 8);
  jpeg[frame + 6] = static_cast<char>(rows);
  jpeg[frame + 7] = static_cast<char>(cols >> 8);
  jpeg[frame + 8] = static_cast<char>(cols);
  return jpeg;
}

TEST(DamagedImage, JpegWithAWrongSizeInItsHeaderIsRefused) {
  const std::string jpeg = to_jpeg(soft_image(17, 19), Chroma::quarter);
  EXPECT_NE(refusal(with_jpeg_size(jpeg, 0, 19)), "");
  EXPECT_NE(refusal(with_jpeg_size(jpeg, 65535, 65535)), "");
  EXPECT_THAT(refusal(with_jpeg_size(jpeg, 65000, 65000)), HasSubstr("expected at most 100000000"));
  EXPECT_THAT(refusal(with_jpeg_size(jpeg, 5000, 5000)),
              HasSubstr("5000x5000 pixels, too many for"));
  EXPECT_NE(refusal(with_jpeg_size(jpeg, 2000, 2000)), "");
}

// Runs `f` with at most `bytes` of additional address space for the process.
void with_memory_limit(rlim_t bytes, const std::function<void()>& f) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit{pages * sysconf(_SC_PAGESIZE) + bytes, before.rlim_max};
  setrlimit(RLIMIT_AS, &limit);
  f();
  setrlimit(RLIMIT_AS, &before);
}

#ifndef __SANITIZE_ADDRESS__  // ASan itself needs more memory
TEST(DamagedImage, NoSmallFileTakesMoreThan64Megabytes) {
  RawPng png{2000, 2000, 8, 2, {"abc"}, "", ""};
  const RgbImage small = soft_image(17, 19);
  const std::vector<std::string> files{
      png.bytes(), with_jpeg_size(to_jpeg(small, Chroma::full), 2000, 2000),
      with_jpeg_size(to_jpeg(small, Chroma::full, 90, /*progressive=*/true), 2000, 2000),
      with_jpeg_size(cmyk_jpeg(17, 19, {9, 8, 7, 6}), 2000, 2000)};
  for (const std::string& file : files) {
    ASSERT_LT(file.size(), 5000u);
    std::string message;
    with_memory_limit(64 << 20, [&] { message = refusal(file); });
    EXPECT_THAT(message, HasSubstr("is not a complete")) << "file " << &file - files.data();
  }
}
#endif

}  // namespace
}  // namespace translution
