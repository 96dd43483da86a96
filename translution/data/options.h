#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"

namespace translution {

/// Where an image lies on its canvas.
enum class Placement { still, moved, fresh };

inline constexpr Named<Placement> kPlacements[] = {
    {Placement::still, "static", "in the middle"},
    {Placement::moved, "dynamic", "anywhere; each image has a place of its own"},
    {Placement::fresh, "fresh", "anywhere, somewhere else in every epoch"},
};

/// Where data comes from: what stands before the colon in "mnist:DIR".
enum class DataKind { digits, mnist, idx, images, tokens, text };

inline constexpr Named<DataKind> kDataKinds[] = {
    {DataKind::digits, "digits",
     "handwritten-looking digits that the program draws; digits:N: so many"},
    {DataKind::mnist, "mnist", "mnist:DIR: MNIST or Fashion-MNIST, images of 28x28"},
    {DataKind::idx, "idx", "idx:DIR: other images in files of the same names and format"},
    {DataKind::images, "images",
     "images:DIR: train/CLASS/*.jpg|png and val/CLASS/…, as ImageNet is kept"},
    {DataKind::tokens, "tokens",
     "tokens:DIR: text, as `translution data text` or nanoGPT keeps it"},
    {DataKind::text, "text", "a few pages that the program brings along, byte by byte"},
};

/// The kind that "mnist:DIR" names. An unknown one: one line with the nearest known one.
TRANSLUTION_API DataKind kind_of(const std::string& data);

/// How images of a folder are changed for training.
enum class Augment { none, light, full };

inline constexpr Named<Augment> kAugments[] = {
    {Augment::none, "none", "the middle of each image, as in evaluation"},
    {Augment::light, "light", "random resized crop and flip"},
    {Augment::full, "full", "the same, RandAugment, and mixup or cutmix"},
};

struct DataOptions {
  std::string data = "digits";             ///< KIND or KIND:WHERE
  std::vector<int64_t> canvas = {84, 84};  ///< rows, cols; empty: the images' own size
  Placement train_on = Placement::still;
  bool fresh = false;  ///< dynamic training places are drawn anew in every epoch
  std::vector<Placement> eval_on = {Placement::still, Placement::moved};
  uint64_t seed = 0;
  int image_size = 224;             ///< image folders: side to which images are cropped
  Augment augment = Augment::full;  ///< image folders: how training images are changed
  std::function<void(const std::string&)> report = {};  ///< told of each broken image
  int64_t length = 0;                                   ///< text: tokens that a model sees at once
  int64_t train_limit = 0;                              ///< take only so many, see limit.h; 0: all
  int64_t eval_limit = 0;
  int64_t hold_out = 0;      ///< images: training samples held out for validation
  double max_broken = 0.01;  ///< image folders: share of broken images at which a run stops
};

/// Do the images lie on a canvas, at rest or moved?
TRANSLUTION_API bool on_canvas(const DataOptions& options);

}  // namespace translution
