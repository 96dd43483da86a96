#include "translution/train/data_fit.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

constexpr const char* kAdvice = "; choose other data or another model";

std::string images_text(const std::vector<int64_t>& size, int64_t channels, int64_t classes) {
  return join(times(size), " images with ", channels, channels == 1 ? " channel" : " channels",
              " in ", classes, classes == 1 ? " class" : " classes");
}

Family family_for(const DataSource& data) {
  if (data.axes > 0) return Family::cloud;
  return data.vocabulary > 0 ? Family::gpt : Family::vit;
}

const char* kind_for(Family family) {
  if (family == Family::cloud) return "points";
  return family == Family::gpt ? "text" : "images";
}

void require_same_kind(const ModelOptions& model, const DataSource& data, const std::string& name) {
  const auto family = family_for(data);
  if (family == model.family) return;
  const auto advice = model.family == Family::gpt
                          ? "use --data tokens:DIR, which `translution data text` writes"
                          : join("use a ", name_of(kFamilies, family), " model");
  require(false, model.name(), ": expected ", kind_for(model.family), ", got ", kind_for(family),
          " (", name, "); ", advice);
}

std::string points_text(int64_t axes, int64_t channels, int64_t classes) {
  return join("points with ", axes, axes == 1 ? " axis" : " axes", " and ", channels,
              channels == 1 ? " feature" : " features",
              classes == 0 ? join(" and a number")
                           : join(" in ", classes, classes == 1 ? " class" : " classes"));
}

// The first samples of the training data.
Batch first_samples(const DataSource& data) {
  constexpr int64_t kSamples = 16;
  BatchPlan plan;
  for (int64_t s = 0; s < std::min(kSamples, data.train->size()); ++s) plan.samples.push_back(s);
  return data.train->load(plan);
}

// The distances of the first points of each cloud to all others, ascending; infinite for padding
// and for the point itself.
torch::Tensor distances_in(const Batch& batch) {
  constexpr int64_t kPoints = 256;
  const auto at = batch.positions.to(torch::kDouble);
  const auto some = at.slice(1, 0, kPoints);
  const auto pad = batch.mask.logical_not();
  auto apart = torch::cdist(some, at, 2, /*compute_mode=*/2);  // exact, without a matrix product
  apart.masked_fill_(torch::eye(some.size(1), at.size(1), torch::kBool), INFINITY);
  apart.masked_fill_(pad.unsqueeze(1), INFINITY);
  apart.masked_fill_(pad.slice(1, 0, kPoints).unsqueeze(2), INFINITY);
  return std::get<0>(apart.sort(2));
}

// The mean distance of pairs that attend to each other, divided by the radius: so that the lattice
// covers most of them. Two digits of it.
double fitting_spacing(const ModelOptions& model, const Batch& batch) {
  auto apart = distances_in(batch);
  if (model.neighbours > 1) apart = apart.slice(2, 0, model.neighbours - 1);  // besides itself
  const double farthest = model.cutoff > 0 ? model.cutoff : std::numeric_limits<double>::max();
  const auto used = apart.masked_select(apart.le(farthest));
  const double mean = used.numel() > 0 ? used.mean().item<double>() : 0;
  require(mean > 0, "the spacing of the lattice does not follow from the data, whose points have ",
          "no others around them; give --spacing");
  const double spacing = mean / static_cast<double>(model.position.radius);
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", spacing);
  return std::strtod(text, nullptr);
}

void fit_to_points(ModelOptions& model, const DataSource& data, bool free_axes, bool free_points) {
  const auto batch = first_samples(data);
  if (free_axes) model.axes = data.axes;
  if (free_points) model.points = batch.positions.size(1);
  if (!model.spacing) model.spacing = fitting_spacing(model, batch);
  const auto unit = target_unit(data);
  model.target_mean = unit.mean, model.target_scale = unit.scale;
}

}  // namespace

TargetUnit target_unit(const DataSource& data) {
  return data.target_scale > 0 ? TargetUnit{data.target_mean, data.target_scale} : TargetUnit{};
}

void require_data_fits(const ModelOptions& model, const DataSource& data, const std::string& name,
                       bool spare_classes) {
  require_same_kind(model, data, name);
  if (model.family == Family::gpt)
    return require(data.vocabulary <= model.vocabulary, name, " does not fit ", model.name(),
                   ": expected a vocabulary of at most ", model.vocabulary, ", got ",
                   data.vocabulary, kAdvice);
  const auto classes = static_cast<int64_t>(data.classes.size());
  if (model.family == Family::cloud)
    return require(data.axes == model.axes && data.channels == model.channels &&
                       (classes == model.classes || (spare_classes && classes < model.classes)),
                   name, " does not fit ", model.name(), ": expected ",
                   points_text(model.axes, model.channels, model.classes), ", got ",
                   points_text(data.axes, data.channels, classes), kAdvice);
  require(data.image == model.image_size && data.channels == model.channels &&
              (classes == model.classes || (spare_classes && classes < model.classes)),
          name, " does not fit ", model.name(), ": expected ",
          images_text(model.image_size, model.channels, model.classes), ", got ",
          images_text(data.image, data.channels, classes), kAdvice);
}

void fit_to_data(ModelOptions& model, const DataSource& data, const std::string& name,
                 const std::vector<std::string>& fixed) {
  require_same_kind(model, data, name);
  const auto is_free = [&](const char* size) {
    return std::find(fixed.begin(), fixed.end(), size) == fixed.end();
  };
  if (model.family == Family::gpt) {
    if (is_free("vocabulary")) model.vocabulary = data.vocabulary;
  } else {
    if (model.family == Family::cloud)
      fit_to_points(model, data, is_free("axes"), is_free("points"));
    if (model.family == Family::vit && is_free("image-size")) model.image_size = data.image;
    if (is_free("channels")) model.channels = data.channels;
    if (is_free("classes")) model.classes = static_cast<int64_t>(data.classes.size());
  }
  model.check();
  require_data_fits(model, data, name);
}

}  // namespace translution
