#include "translution/train/data_fit.h"

#include <algorithm>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

constexpr const char* kAdvice = "; choose other data or another model";

std::string images_text(const std::vector<int64_t>& size, int64_t channels, int64_t classes) {
  return join(times(size), " images with ", channels, channels == 1 ? " channel" : " channels",
              " in ", classes, classes == 1 ? " class" : " classes");
}

void require_same_kind(const ModelOptions& model, const DataSource& data, const std::string& name) {
  require(data.axes == 0, model.name(), ": expected ",
          model.family == Family::gpt ? "text" : "images", ", got points (", name, ")");
  const bool text = data.vocabulary > 0;
  require(text || model.family == Family::vit, model.name(), ": expected text, got images (", name,
          "); use --data tokens:DIR, which `translution data text` writes");
  require(!text || model.family == Family::gpt, model.name(), ": expected images, got text (", name,
          "); use a gpt model");
}

}  // namespace

void require_data_fits(const ModelOptions& model, const DataSource& data, const std::string& name,
                       bool spare_classes) {
  require_same_kind(model, data, name);
  if (model.family == Family::gpt)
    return require(data.vocabulary <= model.vocabulary, name, " does not fit ", model.name(),
                   ": expected a vocabulary of at most ", model.vocabulary, ", got ",
                   data.vocabulary, kAdvice);
  const auto classes = static_cast<int64_t>(data.classes.size());
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
    if (is_free("image-size")) model.image_size = data.image;
    if (is_free("channels")) model.channels = data.channels;
    if (is_free("classes")) model.classes = static_cast<int64_t>(data.classes.size());
  }
  model.check();
  require_data_fits(model, data, name);
}

}  // namespace translution
