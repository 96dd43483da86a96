#include "translution/data/sources.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "translution/core/error.h"
#include "translution/core/random.h"
#include "translution/data/canvas.h"
#include "translution/data/cloud_file.h"
#include "translution/data/cloud_folder.h"
#include "translution/data/digits.h"
#include "translution/data/image_folder.h"
#include "translution/data/image_points.h"
#include "translution/data/limit.h"
#include "translution/data/tokens.h"

namespace translution {

using namespace detail;

namespace {

constexpr const char* kHeldOut = "held_out";  // the evaluation set
constexpr int64_t kAllDigits = 60000, kMaxDigits = 1000000;

// Uses of the run's seed; each has an independent stream of random numbers.
enum SeedUse : uint64_t {
  kTrainDigits = 1,
  kEvalDigits,
  kTrainPlacements,
  kEvalPlacements,
  kTrainLimit,
  kEvalLimit,
  kHeldOutPlacements
};

uint64_t seed_for(const DataOptions& options, SeedUse use) {
  return Random({options.seed, use}).bits();
}

// Training and evaluation data cut to their limits.
template <typename Data>
auto limit_train(Data data, const DataOptions& options) {
  return take_samples(std::move(data), options.train_limit, seed_for(options, kTrainLimit));
}

template <typename Data>
auto limit_eval(Data data, const DataOptions& options) {
  return take_samples(std::move(data), options.eval_limit, seed_for(options, kEvalLimit));
}

struct Split {
  LabelledImages train, eval;
  std::optional<LabelledImages> held_out = {};
};

int64_t parse_count(const std::string& kind, const std::string& text) {
  int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  require(error == std::errc() && stop == end && 1 <= count && count <= kMaxDigits, "data ", kind,
          ":N: expected 1 to ", kMaxDigits, " digits, got '", text, "'");
  return count;
}

int64_t limited(int64_t count, int64_t limit) {
  return limit == 0 ? count : std::min(count, limit);
}

Split draw_digits(const DataOptions& options, const std::string& where) {
  const auto kind = options.data.substr(0, options.data.find(':'));
  const int64_t train = where.empty() ? kAllDigits : parse_count(kind, where);
  const int64_t eval = std::clamp<int64_t>(train / 5, 1000, 10000);
  return {make_digits(limited(train, options.train_limit), seed_for(options, kTrainDigits)),
          make_digits(limited(eval, options.eval_limit), seed_for(options, kEvalDigits))};
}

Split read_split(const DataOptions& options, const std::string& directory) {
  require(!directory.empty(), "data ", options.data,
          ": expected a directory after the kind, as in ",
          options.data.substr(0, options.data.find(':')), ":DIR");
  Split split{limit_train(read_idx(directory, IdxPart::train), options),
              limit_eval(read_idx(directory, IdxPart::t10k), options)};
  ensure(split.train.pixels.sizes().slice(1) == split.eval.pixels.sizes().slice(1), directory,
         ": training images are ", times(split.train.pixels.sizes().slice(1)), ", test images ",
         times(split.eval.pixels.sizes().slice(1)));
  return split;
}

Split read_mnist(const DataOptions& options, const std::string& directory) {
  Split split = read_split(options, directory);
  const auto sides = split.train.pixels.sizes().slice(1);
  ensure(sides == c10::IntArrayRef({kDigitSide, kDigitSide}), directory,
         ": MNIST's images are 28x28, these are ", times(sides),
         "; read them with idx:", directory);
  return split;
}

std::vector<int64_t> canvas_of(const DataOptions& options, const Split& split) {
  if (options.canvas.empty()) return split.train.pixels.sizes().slice(1).vec();
  require(options.canvas.size() == 2, "canvas: expected rows and columns, got ",
          times(options.canvas));
  return options.canvas;
}

Split without_held_out(Split split, int64_t count) {
  if (count == 0) return split;
  const auto samples = hold_out(split.train.classes(), count);
  split.held_out = select_samples(split.train, samples.held_out);
  split.train = select_samples(split.train, samples.rest);
  return split;
}

// What becomes of images on a canvas.
enum class Shown { as_images, as_points };

std::shared_ptr<const Dataset> place(const LabelledImages& images, Shown shown,
                                     const ImagePointsOptions& options) {
  if (shown == Shown::as_points) return std::make_shared<ImagePointsDataset>(images, options);
  const bool fresh = options.fresh && options.placement == Placement::moved;
  return std::make_shared<CanvasDataset>(
      images, CanvasOptions{options.rows, options.cols,
                            fresh ? Placement::fresh : options.placement, options.seed});
}

void check_placements(const DataOptions& options, Shown shown) {
  const auto check = [&](const char* name, Placement placement) {
    require(
        shown == Shown::as_points || placement <= Placement::moved || placement == Placement::fresh,
        name, ": expected static or dynamic for images, got ", name_of(kPlacements, placement),
        "; points have it (--data digits-points or mnist-points:DIR)");
  };
  check("train-on", options.train_on);
  for (const Placement placement : options.eval_on) {
    require(placement != Placement::fresh, "eval_on: expected static or dynamic, got fresh");
    check("eval-on", placement);
  }
}

DataSource place_on_canvas(const DataOptions& options, Split all, Shown shown) {
  check_placements(options, shown);
  const Split split = without_held_out(std::move(all), options.hold_out);
  const auto canvas = canvas_of(options, split);
  const auto show = [&](const LabelledImages& images, Placement placement, SeedUse use) {
    const bool train = use == kTrainPlacements;
    const bool fresh = train && (options.fresh || placement == Placement::fresh);
    return place(images, shown,
                 {canvas[0], canvas[1], placement, train, fresh, seed_for(options, use)});
  };
  DataSource source;
  source.train = show(split.train, options.train_on, kTrainPlacements);
  if (split.held_out)
    source.evaluation.push_back(
        {kHeldOut, show(*split.held_out, options.train_on, kHeldOutPlacements)});
  const bool has_margin = canvas != split.train.pixels.sizes().slice(1).vec();
  const bool as_given = has_margin || shown == Shown::as_points;
  for (const Placement placement : as_given ? options.eval_on : std::vector{Placement::still})
    source.evaluation.push_back(
        {name_of(kPlacements, placement), show(split.eval, placement, kEvalPlacements)});
  require(!source.evaluation.empty(),
          "eval-on: expected static or dynamic, or samples of --hold-out, got neither");
  source.classes = source.train->classes();
  if (shown == Shown::as_points)
    source.axes = 2, source.features = {"brightness"};
  else
    source.image = canvas;
  return source;
}

// An empty directory means the built-in text.
std::shared_ptr<const TokenDataset> open_tokens(const DataOptions& options,
                                                const std::string& directory, TokenSplit split) {
  const TokenWindows windows{options.length, seed_for(options, kTrainPlacements),
                             split == TokenSplit::train};
  if (directory.empty()) return TokenDataset::built_in(split, windows);
  return std::make_shared<TokenDataset>(directory, split, windows);
}

DataSource open_text(const DataOptions& options, const std::string& directory) {
  require(options.hold_out == 0, "hold-out: expected 0 for text, which has a validation set, got ",
          options.hold_out);
  require(options.length > 0, "data ", options.data,
          ": expected a gpt model, whose length is the window length");
  const auto train = open_tokens(options, directory, TokenSplit::train);
  DataSource source;
  source.train = limit_train(train, options);
  source.evaluation.push_back(
      {"val", limit_eval(open_tokens(options, directory, TokenSplit::val), options)});
  source.vocabulary = train->meta().vocabulary;
  return source;
}

// The held-out samples are taken from `plain`, the training samples without augmentation.
void hold_out_samples(const DataOptions& options, std::shared_ptr<const Dataset> plain,
                      DataSource& source) {
  auto labels = source.train->labels();
  labels.resize(source.train->size());  // numbers have no labels
  const auto samples = hold_out(labels, options.hold_out);
  source.evaluation.push_back(
      {kHeldOut, select_samples(limit_train(std::move(plain), options), samples.held_out)});
  source.train = select_samples(source.train, samples.rest);
}

DataSource open_folders(const DataOptions& options, const std::string& directory) {
  require(!directory.empty(), "data ", options.data, ": expected a directory, as in images:DIR");
  ImageFolderOptions folder;
  folder.image_size = options.image_size;
  folder.seed = seed_for(options, kTrainPlacements);
  folder.augment = options.augment;
  folder.report_broken = options.report;
  folder.max_broken_share = options.max_broken;
  auto folders = open_image_folders(directory, folder);
  DataSource source;
  source.classes = folders.train->classes();
  source.train = limit_train(std::move(folders.train), options);
  if (options.hold_out > 0) {
    folder.augment = Augment::none;
    hold_out_samples(options, std::make_shared<ImageFolderDataset>(directory + "/train", folder),
                     source);
  }
  source.evaluation.push_back({"val", limit_eval(std::move(folders.val), options)});
  source.image = {options.image_size, options.image_size};
  source.channels = 3;
  return source;
}

DataSource open_cloud_text(const DataOptions& options, const std::string& directory) {
  const auto files = read_cloud_files(directory);
  const uint64_t seed = seed_for(options, kTrainPlacements);
  const auto dataset = [&](const auto& text, const CloudChange& change) {
    return std::make_shared<CloudFileDataset>(text, files.classes, files.scale, change, seed);
  };
  const CloudChange plain{options.max_points, Rotation::none, false};
  DataSource source;
  source.train = limit_train<std::shared_ptr<const Dataset>>(
      dataset(files.train, {options.max_points, options.rotation, true}), options);
  if (options.hold_out > 0) hold_out_samples(options, dataset(files.train, plain), source);
  source.evaluation.push_back(
      {"val", limit_eval<std::shared_ptr<const Dataset>>(dataset(files.val, plain), options)});
  source.classes = files.classes;
  source.axes = files.train->axes;
  source.channels = files.train->clouds.front().channels;
  source.features = files.train->features;
  source.target_mean = files.scale.mean;
  source.target_scale = files.scale.scale;
  return source;
}

DataSource open_cloud_folder(const DataOptions& options, const std::string& directory) {
  CloudFolderOptions folder;
  folder.change = {options.max_points, options.rotation, true};
  folder.seed = seed_for(options, kTrainPlacements);
  folder.max_broken_share = options.max_broken;
  folder.report_broken = options.report;
  auto folders = open_cloud_folders(directory, folder);
  DataSource source;
  source.classes = folders.train->classes();
  source.axes = 3;
  source.features = folders.train->features();
  source.channels = std::max<int64_t>(1, static_cast<int64_t>(source.features.size()));
  source.train = limit_train<std::shared_ptr<const Dataset>>(std::move(folders.train), options);
  if (options.hold_out > 0) {
    folder.change = {options.max_points, Rotation::none, false};
    folder.report_broken = {};  // reported by the training set
    hold_out_samples(options, std::make_shared<CloudFolderDataset>(directory + "/train", folder),
                     source);
  }
  source.evaluation.push_back(
      {"val", limit_eval<std::shared_ptr<const Dataset>>(std::move(folders.val), options)});
  return source;
}

DataSource open_points(const DataOptions& options, const std::string& directory) {
  require(!directory.empty(), "data ", options.data, ": expected a directory, as in points:DIR");
  std::error_code ignored;
  const bool text = std::filesystem::exists(directory + "/train.txt", ignored);
  const bool folder = std::filesystem::is_directory(directory + "/train", ignored);
  ensure(text || folder, directory,
         ": has neither train.txt nor a folder train; expected train.txt and val.txt, or "
         "train/<class>/ and val/<class>/ with .ply files");
  ensure(!text || !folder, directory, ": has train.txt and a folder train; remove one of them");
  auto source = text ? open_cloud_text(options, directory) : open_cloud_folder(options, directory);
  require(source.axes > 1 || options.rotation == Rotation::none,
          "rotate: expected points with 2 or 3 axes, got ", source.axes);
  return source;
}

}  // namespace

DataSource open_data(const DataOptions& options) {
  require(options.train_limit >= 0 && options.eval_limit >= 0,
          "data: expected limits of 0 (all) or more, got ", options.train_limit, " and ",
          options.eval_limit);
  require(options.hold_out >= 0, "hold-out: expected 0 or more, got ", options.hold_out);
  const auto kind = kind_of(options.data);
  const size_t colon = options.data.find(':');
  const auto where = colon == std::string::npos ? "" : options.data.substr(colon + 1);
  switch (kind) {
    case DataKind::digits:
      return place_on_canvas(options, draw_digits(options, where), Shown::as_images);
    case DataKind::mnist:
      return place_on_canvas(options, read_mnist(options, where), Shown::as_images);
    case DataKind::idx:
      return place_on_canvas(options, read_split(options, where), Shown::as_images);
    case DataKind::digits_points:
      return place_on_canvas(options, draw_digits(options, where), Shown::as_points);
    case DataKind::mnist_points:
      return place_on_canvas(options, read_split(options, where), Shown::as_points);
    case DataKind::images:
      return open_folders(options, where);
    case DataKind::points:
      return open_points(options, where);
    case DataKind::tokens:
      require(!where.empty(), "data ", options.data, ": expected a directory, as in tokens:DIR");
      return open_text(options, where);
    case DataKind::text:
      require(where.empty(), "data text: expected no directory, got '", where, "'");
      return open_text(options, "");
  }
  throw std::logic_error("open_data: a kind without a case");
}

}  // namespace translution
