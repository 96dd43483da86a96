// Images per second of the image-folder dataset on two threads, compared with bare libjpeg-turbo,
// which decodes the same files at full size from memory. Interleaves several rounds and prints the
// best of each, since other load can only slow them down.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <thread>

// Must follow <cstdio>.
#include <jpeglib.h>

#include "translution/core/error.h"
#include "translution/data/image_file.h"
#include "translution/data/image_folder.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;

constexpr int kImages = 400, kThreads = 2, kRounds = 7, kBatch = 20;
constexpr int kRows = 375, kCols = 500, kQuality = 96;

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "bench_images_XXXXXX").string();
    ensure(mkdtemp(name.data()) != nullptr, name, ": cannot create the directory");
    path = name;
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  fs::path path;
};

// Blurred noise with fine grain: about 110 KB as JPEG, the mean size of an ImageNet photograph.
cv::Mat make_image(int number) {
  cv::RNG random(number + 1);
  const int rows = kRows + number % 7, cols = kCols - number % 5;
  cv::Mat shapes(rows, cols, CV_8UC3), grain(rows, cols, CV_8UC3);
  random.fill(shapes, cv::RNG::UNIFORM, 0, 256);
  cv::GaussianBlur(shapes, shapes, {}, 2);
  random.fill(grain, cv::RNG::UNIFORM, 0, 80);
  cv::GaussianBlur(grain, grain, {}, 0.7);
  return shapes + grain;
}

std::string to_jpeg(const cv::Mat& image) {
  std::vector<unsigned char> bytes;
  ensure(cv::imencode(".jpg", image, bytes, {cv::IMWRITE_JPEG_QUALITY, kQuality}),
         "cannot encode an image");
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> write_folder(const fs::path& folder) {
  std::vector<std::string> files;
  for (int i = 0; i < kImages; ++i) {
    const fs::path class_folder = folder / fmt::format("class{}", i % 4);
    fs::create_directories(class_folder);
    files.push_back(to_jpeg(make_image(i)));
    std::ofstream(class_folder / fmt::format("{:04}.jpg", i), std::ios::binary) << files.back();
  }
  return files;
}

// Images per second on all threads; `work(first)` processes kBatch images.
double measure(const std::function<void(int first)>& work) {
  std::atomic<int> next{0};
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int first; (first = next.fetch_add(kBatch)) < kImages;) work(first);
    });
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return kImages / seconds.count();
}

struct BareDecoder {
  BareDecoder() {
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
  }
  ~BareDecoder() { jpeg_destroy_decompress(&info); }
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
};

void decode_bare(const std::vector<std::string>& files, int first) {
  static thread_local BareDecoder decoder;
  static thread_local std::vector<unsigned char> out((kRows + 7) * kCols * 3);
  jpeg_decompress_struct& info = decoder.info;
  for (int i = first; i < first + kBatch; ++i) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(files[i].data());
    jpeg_mem_src(&info, bytes, files[i].size());
    jpeg_read_header(&info, TRUE);
    jpeg_start_decompress(&info);
    for (JSAMPROW row = out.data(); info.output_scanline < info.output_height;
         row += info.output_width * 3)
      jpeg_read_scanlines(&info, &row, 1);
    jpeg_finish_decompress(&info);
  }
}

void load(const ImageFolderDataset& set, int first) {
  BatchPlan plan{0, first / kBatch, {}};
  for (int i = first; i < first + kBatch; ++i) plan.samples.push_back(i);
  const Batch batch = set.load(plan);
  ensure(batch.input.size(0) == kBatch, "expected a batch of ", kBatch, ", got ",
         batch.input.size(0));
}

void run() {
  const TemporaryFolder folder;
  const auto files = write_folder(folder.path);
  size_t bytes = 0;
  for (const auto& file : files) bytes += file.size();
  ImageFolderOptions options;
  const ImageFolderDataset evaluation(folder.path.string(), options);
  options.augment = Augment::full;
  const ImageFolderDataset training(folder.path.string(), options);

  double bare = 0, eval = 0, train = 0;
  for (int round = 0; round < kRounds; ++round) {
    bare = std::max(bare, measure([&](int first) { decode_bare(files, first); }));
    eval = std::max(eval, measure([&](int first) { load(evaluation, first); }));
    train = std::max(train, measure([&](int first) { load(training, first); }));
  }
  ensure(evaluation.broken().lines().empty() && training.broken().lines().empty(),
         "expected no broken images");
  fmt::print("{} JPEGs of about {}x{}, {:.0f} KB each, {} threads\n", kImages, kCols, kRows,
             bytes / 1e3 / kImages, kThreads);
  fmt::print("bare libjpeg-turbo  {:6.0f} images/s\n", bare);
  fmt::print("evaluation          {:6.0f} images/s  {:.2f} of bare\n", eval, eval / bare);
  fmt::print("training            {:6.0f} images/s  {:.2f} of bare\n", train, train / bare);
}

}  // namespace
}  // namespace translution

int main() {
  try {
    translution::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_images: {}\n", error.what());
    return 1;
  }
}
