// make_corpus DIR: writes small valid files for the parsers of binary formats, one folder per
// target. Those of text formats are in fuzz/corpus.

#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <opencv2/imgcodecs.hpp>

#include "translution/io/safetensors_header.h"
#include "translution/train/manifest.h"

namespace {

using namespace translution;

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  if (!(std::ofstream(path, std::ios::binary) << bytes)) {
    std::fprintf(stderr, "make_corpus: cannot write %s\n", path.c_str());
    std::exit(1);
  }
}

void write_gzip(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

std::string idx_of_images() {  // two of 3x3
  return std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x03", 16) + std::string(18, '\x70');
}

std::string idx_of_labels() { return std::string("\0\0\x08\x01\0\0\0\x02\x05\x07", 10); }

std::string safetensors() {
  SafetensorsHeader header;
  header.entries = {{"weight", SafetensorsType::f32, {2, 3}, 0, 24},
                    {"bias", SafetensorsType::f64, {1}, 24, 32}};
  header.metadata = {{"format", "pt"}};
  return format_safetensors_header(header) + std::string(32, '\x3f');
}

// A list, then a vertex with x, y, z and a colour, all zeros.
std::string ply(const std::string& format) {
  return "ply\nformat " + format +
         " 1.0\nelement face 1\nproperty list uchar short i\nelement vertex 1\nproperty float x\n"
         "property double y\nproperty int z\nproperty uchar red\nend_header\n" +
         std::string(18, '\0');
}

cv::Mat picture(int type) {
  cv::Mat mat(17, 23, type);
  cv::randu(mat, 0, 256);
  return mat;
}

std::string encode(const char* ending, int type, const std::vector<int>& options = {}) {
  std::vector<unsigned char> bytes;
  cv::imencode(ending, picture(type), bytes, options);
  return {bytes.begin(), bytes.end()};
}

// Adds EXIF metadata that rotates the image by 90 degrees.
std::string rotated(const std::string& jpeg) {
  const std::string exif(
      "\xFF\xE1\0\x22"
      "Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0",
      36);
  return jpeg.substr(0, 2) + exif + jpeg.substr(2);
}

std::string manifest() {
  Manifest it;
  it.step = 12;
  it.model = it.optimizer = {32, std::string(32, 'a')};
  it.state = {{"config", {{"model", "vit-a/12"}}}, {"best", 0.5}, {"evaluated", true}};
  return format_manifest(it);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: make_corpus DIR\n"), 2;
  const std::filesystem::path out = argv[1];
  write(out / "idx/images", idx_of_images());
  write(out / "idx/labels", idx_of_labels());
  write_gzip(out / "idx/images.gz", idx_of_images());
  write_gzip(out / "gzip/labels.gz", idx_of_labels());
  write(out / "image/colour.png", encode(".png", CV_8UC3));
  write(out / "image/grey16.png", encode(".png", CV_16UC1));
  write(out / "image/baseline.jpg", encode(".jpg", CV_8UC3));
  write(out / "image/rotated.jpg", rotated(encode(".jpg", CV_8UC3)));
  write(out / "image/grey.jpg", encode(".jpg", CV_8UC1));
  write(out / "image/progressive.jpg", encode(".jpg", CV_8UC3, {cv::IMWRITE_JPEG_PROGRESSIVE, 1}));
  write(out / "ply/little", ply("binary_little_endian"));
  write(out / "ply/big", ply("binary_big_endian"));
  write(out / "safetensors/two", safetensors());
  write(out / "manifest/small", manifest());
  write(out / "request/predict.png",
        "POST\n/predict\nrun\n0\nlocalhost\n\n" + encode(".png", CV_8UC1));
}
