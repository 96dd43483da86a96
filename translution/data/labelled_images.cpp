#include "translution/data/labelled_images.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "translution/core/error.h"
#include "translution/core/random.h"
#include "translution/data/digits.h"
#include "translution/io/file.h"
#include "translution/ops/parallel.h"

namespace translution {

using namespace detail;

namespace {

constexpr uint64_t kDrawDigit = 0xD1617;  // key of these draws: independent of others of the seed

torch::Tensor to_tensor(IdxArray array) {
  const auto owner = std::make_shared<std::vector<uint8_t>>(std::move(array.values));
  return torch::from_blob(
      owner->data(), array.sizes, [owner](void*) {}, torch::kUInt8);
}

// The first existing path among the spellings of e.g. "train-images" and "idx3-ubyte".
std::string find_file(const std::string& directory, const std::string& what,
                      const std::string& type) {
  for (const char* separator : {"-", "."}) {
    for (const char* suffix : {"", ".gz"}) {
      const auto path = std::filesystem::path(directory) / join(what, separator, type, suffix);
      std::error_code ignored;
      if (std::filesystem::exists(path, ignored)) return path.string();
    }
  }
  throw std::runtime_error(
      join(directory, ": has no ", what, "-", type, ", plain or .gz; scripts/fetch-mnist ",
           directory, " fetches MNIST, scripts/fetch-fashion-mnist ", directory, " Fashion-MNIST"));
}

}  // namespace

std::vector<int64_t> LabelledImages::classes() const {
  const auto values = labels.contiguous();
  return {values.data_ptr<int64_t>(), values.data_ptr<int64_t>() + values.numel()};
}

LabelledImages make_digits(int64_t count, uint64_t seed) {
  require(count >= 0, "make_digits: expected at least 0 digits, got ", count);
  LabelledImages digits{torch::empty({count, kDigitSide, kDigitSide}, torch::kUInt8),
                        torch::empty({count}, torch::kInt64)};
  uint8_t* pixels = digits.pixels.data_ptr<uint8_t>();
  int64_t* labels = digits.labels.data_ptr<int64_t>();
  parallel_ranges(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Random random({seed, kDrawDigit, static_cast<uint64_t>(i)});
      labels[i] = random.below(10);
      draw_digit(static_cast<int>(labels[i]), random, pixels + i * kDigitSide * kDigitSide);
    }
  });
  return digits;
}

LabelledImages join_idx(IdxArray images, const std::string& images_name, const IdxArray& labels,
                        const std::string& labels_name) {
  ensure(images.sizes.size() == 3, images_name, ": expected images (count, rows, columns), got ",
         times(images.sizes));
  ensure(labels.sizes.size() == 1, labels_name, ": expected a list of labels, got ",
         times(labels.sizes));
  ensure(images.sizes[0] == labels.sizes[0], labels_name, ": has ", labels.sizes[0],
         " labels, but ", images_name, " has ", images.sizes[0], " images");
  const auto largest = std::max_element(labels.values.begin(), labels.values.end());
  ensure(*largest < 10, labels_name, ": expected labels from 0 to 9, label ",
         largest - labels.values.begin(), " is ", static_cast<int>(*largest));
  return {to_tensor(std::move(images)), to_tensor(labels).to(torch::kInt64)};
}

LabelledImages read_idx(const std::string& directory, IdxPart part) {
  const std::string prefix = part == IdxPart::train ? "train" : "t10k";
  const auto images = find_file(directory, prefix + "-images", "idx3-ubyte");
  const auto labels = find_file(directory, prefix + "-labels", "idx1-ubyte");
  return join_idx(parse_idx(read_file(images), images), images,
                  parse_idx(read_file(labels), labels), labels);
}

}  // namespace translution
