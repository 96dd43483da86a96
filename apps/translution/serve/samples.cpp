#include "samples.h"

#include <algorithm>

#include "http.h"
#include "translution/core/error.h"
#include "translution/data/settings.h"

namespace translution::serve {

using namespace detail;

namespace {

constexpr int64_t kMost = 1000;  // samples

// A picture of one pixel as input, [channels,1,1].
torch::Tensor one_pixel(uint8_t value, int64_t channels) {
  auto pixel = torch::empty({channels, 1, 1});
  picture_values({1, 1, {value, value, value}}, channels, pixel.data_ptr<float>());
  return pixel;
}

// The data of the run; digits as they are, without a canvas.
DataOptions data_options(const Trained& trained) {
  DataOptions options;
  set_all(data_settings(), trained.config, options);
  if (const auto found = trained.config.find("seed"); found != trained.config.end())
    options.seed = SettingValue{"seed", found->second}.number();
  options.canvas = {};
  options.eval_on = {Placement::still};
  options.image_size = static_cast<int>(trained.network->options().image_size.front());
  options.train_limit = 1;
  options.eval_limit = kMost;
  options.hold_out = 0;
  return options;
}

}  // namespace

Samples::Samples(const Trained& trained) {
  try {
    open(trained);
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
}

void Samples::open(const Trained& trained) {
  const auto& model = trained.network->options();
  require(trained.names_classes, trained.path, " does not say which data it was trained on");
  const auto source = open_data(data_options(trained));
  require(source.axes == 0, "the data has points");
  require(source.channels == model.channels && source.image[0] <= model.image_size[0] &&
              source.image[1] <= model.image_size[1],
          "the data has images of ", times(source.image), " in ", source.channels, " channels");
  channels_ = source.channels;
  black_ = one_pixel(0, channels_);
  white_ = one_pixel(255, channels_);
  classes_ = source.classes;
  dataset_ = source.evaluation.back().dataset;
  labels_ = dataset_->labels();
}

Sample Samples::get(int64_t index, const std::optional<std::string>& label) const {
  if (!dataset_) throw Refusal(kNotFound, join("no test set: ", problem_));
  std::vector<int64_t> found;
  for (size_t s = 0; s < labels_.size(); ++s)
    if (!label || classes_.at(labels_[s]) == *label) found.push_back(static_cast<int64_t>(s));
  if (found.empty())
    throw Refusal(kNotFound, join("no sample of class '", label.value_or(""), "'"));
  const auto count = static_cast<int64_t>(found.size());
  BatchPlan plan;
  plan.samples = {found[index % count]};
  const auto values = dataset_->load(plan).input[0];  // [channels,rows,cols]
  const auto bytes = ((values - black_) / (white_ - black_) * 255)
                         .round()
                         .clamp(0, 255)
                         .to(torch::kByte)
                         .expand({3, -1, -1})
                         .permute({1, 2, 0})
                         .contiguous();
  Sample sample{{static_cast<int>(bytes.size(0)), static_cast<int>(bytes.size(1)), {}},
                classes_.at(labels_.at(plan.samples[0])),
                index % count,
                count};
  const auto* data = bytes.data_ptr<uint8_t>();
  sample.image.pixels.assign(data, data + bytes.numel());
  return sample;
}

}  // namespace translution::serve
