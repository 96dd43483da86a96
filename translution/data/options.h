#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"

namespace translution {

/// How an image is placed on its canvas. `scaled` to `cluttered` are for points.
enum class Placement { still, moved, scaled, rotated, cluttered, fresh };

inline constexpr Named<Placement> kPlacements[] = {
    {Placement::still, "static", "in the centre"},
    {Placement::moved, "dynamic", "a random placement per image"},
    {Placement::scaled, "scaled", "dynamic, 0.7 to 1.4 times as large"},
    {Placement::rotated, "rotated", "dynamic, rotated by up to 45 degrees"},
    {Placement::cluttered, "clutter", "dynamic, with 16 to 32 more points anywhere"},
    {Placement::fresh, "fresh", "a random placement per image and epoch"},
};

/// The source of the data: the word before the colon in "mnist:DIR".
enum class DataKind {
  digits,
  mnist,
  idx,
  images,
  digits_points,
  mnist_points,
  points,
  tokens,
  text
};

inline constexpr Named<DataKind> kDataKinds[] = {
    {DataKind::digits, "digits",
     "generated handwritten-looking digits; digits:N: N training digits"},
    {DataKind::mnist, "mnist", "mnist:DIR: MNIST or Fashion-MNIST, images of 28x28"},
    {DataKind::idx, "idx", "idx:DIR: other images with MNIST's file names and format"},
    {DataKind::images, "images",
     "images:DIR: train/CLASS/*.jpg|png and val/CLASS/…, ImageNet's layout"},
    {DataKind::digits_points, "digits-points", "digits as clouds of 64 to 96 points"},
    {DataKind::mnist_points, "mnist-points",
     "mnist-points:DIR: images in MNIST's files as clouds of points"},
    {DataKind::points, "points",
     "points:DIR: train/CLASS/*.ply and val/CLASS/…, or train.txt and val.txt"},
    {DataKind::tokens, "tokens",
     "tokens:DIR: text tokenised by `translution data text` or nanoGPT"},
    {DataKind::text, "text", "a few built-in pages of text, one token per byte"},
};

/// The kind in a string like "mnist:DIR". Throws std::invalid_argument for an unknown one; the
/// message suggests the nearest name.
TRANSLUTION_API DataKind kind_of(const std::string& data);

/// Augmentation of training images from folders.
enum class Augment { none, light, full };

inline constexpr Named<Augment> kAugments[] = {
    {Augment::none, "none", "centre crop, as in evaluation"},
    {Augment::light, "light", "random resized crop and flip"},
    {Augment::full, "full", "light, RandAugment, and mixup or cutmix"},
};

/// Rotation of training clouds from files.
enum class Rotation { none, upright, any };

inline constexpr Named<Rotation> kRotations[] = {
    {Rotation::none, "none", "as in the file"},
    {Rotation::upright, "upright", "about the third axis"},
    {Rotation::any, "any", "any rotation"},
};

struct DataOptions {
  std::string data = "digits";             ///< KIND or KIND:WHERE
  std::vector<int64_t> canvas = {84, 84};  ///< rows, cols; empty: the images' own size
  Placement train_on = Placement::still;
  bool fresh = false;  ///< draw dynamic training placements in every epoch
  std::vector<Placement> eval_on = {Placement::still, Placement::moved};
  uint64_t seed = 0;
  int image_size = 224;                ///< image folders: side length of the crops
  Augment augment = Augment::full;     ///< image folders: augmentation of training images
  Rotation rotation = Rotation::none;  ///< clouds from files: of training clouds
  int64_t max_points = 1024;  ///< clouds from files: larger ones keep random points; 0: all
  std::function<void(const std::string&)> report = {};  ///< called for each broken file
  int64_t length = 0;                                   ///< text: tokens per window
  int64_t train_limit = 0;                              ///< maximum samples, see limit.h; 0: all
  int64_t eval_limit = 0;
  int64_t hold_out = 0;      ///< images: training samples held out for validation
  double max_broken = 0.01;  ///< folders: largest share of broken files
};

/// Whether images are placed on a canvas: digits, mnist and idx, and the first two as points.
TRANSLUTION_API bool on_canvas(const DataOptions& options);

}  // namespace translution
