#include "translution/data/cifar10.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/data/image_file.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

constexpr int kSide = 32;
constexpr int64_t kMaxLabelBytes = 1 << 20;

// File names of the npm package, with its spelling.
struct PartFiles {
  std::vector<std::string> strips;
  std::string labels;
};

const PartFiles& files_of(Cifar10Part part) {
  static const PartFiles train{{"data_batch_1.png", "data_batch_2.png", "data_batch_3.png",
                                "data_batch_4.png", "data_batch_5.png"},
                               "train_lables.json"};
  static const PartFiles test{{"test_batch.png"}, "test_lables.json"};
  return part == Cifar10Part::train ? train : test;
}

std::vector<int64_t> read_labels(const std::string& path) {
  const auto text = read_file(path, kMaxLabelBytes);
  const auto list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  ensure(list.is_array(), path, ": expected a JSON list of labels");
  const auto classes = static_cast<int64_t>(cifar10_classes().size());
  std::vector<int64_t> labels;
  for (const auto& label : list) {
    const bool valid = label.is_number_unsigned() && label.get<uint64_t>() < uint64_t(classes);
    ensure(valid, path, ": expected labels from 0 to ", classes - 1, "; label ", labels.size(),
           " is another value");
    labels.push_back(label.get<int64_t>());
  }
  return labels;
}

}  // namespace

RgbImage Cifar10Strip::image(int64_t index) const {
  constexpr int64_t kBytes = int64_t{3} * kSide * kSide;
  const auto first = pixels.pixels.begin() + index * kBytes;
  return {kSide, kSide, {first, first + kBytes}};
}

const std::vector<std::string>& cifar10_classes() {
  static const std::vector<std::string> names = {
      "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  return names;
}

void read_cifar10(const std::string& directory, Cifar10Part part,
                  const std::function<void(const Cifar10Strip&)>& take) {
  const auto& files = files_of(part);
  const std::string labels_path = directory + "/" + files.labels;
  const auto labels = read_labels(labels_path);
  size_t first = 0;
  for (const auto& name : files.strips) {
    const std::string path = directory + "/" + name;
    Cifar10Strip strip{{}, read_image(path)};
    ensure(strip.pixels.cols == kSide * kSide, path, ": expected ", kSide * kSide,
           " columns, an image of 32x32 per row, got ", strip.pixels.cols);
    const size_t count = strip.pixels.rows;
    ensure(first + count <= labels.size(), labels_path, ": has ", labels.size(),
           " labels, but there are more images; expected one per row of the strips");
    strip.labels.assign(labels.begin() + first, labels.begin() + first + count);
    take(strip);
    first += count;
  }
  ensure(first == labels.size(), labels_path, ": has ", labels.size(), " labels for ", first,
         " images; expected one per row of the strips");
}

}  // namespace translution
