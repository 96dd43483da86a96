#include "translution/train/trained.h"

#include <filesystem>

#include "translution/core/error.h"
#include "translution/data/class_names.h"
#include "translution/data/image_file.h"
#include "translution/data/settings.h"
#include "translution/models/bf16_weights.h"
#include "translution/models/check_weights.h"
#include "translution/models/memory_check.h"
#include "translution/models/settings.h"
#include "translution/nn/regrid.h"
#include "translution/train/checkpoint.h"
#include "translution/train/data_fit.h"
#include "translution/train/model_file.h"

namespace translution {

using namespace detail;

namespace {

// Throws before it allocates anything if the tensors do not fit the model or it is too large.
std::shared_ptr<Network> make_network(ModelOptions options, const NamedTensors& tensors,
                                      const std::string& path) {
  require_shapes(options, tensors, path);
  require_memory_to_evaluate(options, 1, "choose a smaller model");
  options.init = Init::none;
  const auto network = std::make_shared<Network>(options);
  if (options.precision == Precision::bf16)
    adopt_tensors(network->module(), tensors);
  else
    load_tensors(network->module(), tensors, options.grid());
  network->module().eval();
  return network;
}

void check_data_of(const Trained& trained, const DataSource& source, const std::string& data) {
  const auto& model = trained.network->options();
  const bool is_text = model.family == Family::gpt && source.vocabulary > 0;
  require(!is_text || source.vocabulary == trained.vocabulary, data, ": expected a vocabulary of ",
          trained.vocabulary, " as in ", trained.path, ", got ", source.vocabulary,
          "; choose other data with --data");
  const bool has_classes = model.family != Family::gpt && source.vocabulary == 0;
  const auto difference = class_difference(trained.classes, source.classes);
  require(!has_classes || !trained.names_classes || difference.empty(), data,
          ": the classes are not those of ", trained.path, ": ", difference,
          "; use the same class folders, or choose other data with --data");
  require_data_fits(model, source, data);
}

// A file of weights stores its model's options, but neither data settings nor class names.
Trained load_converted(const std::string& path, Precision precision) {
  const auto model = load_described(path, kDescribeAdvice, precision);
  const auto texts = model_texts(model.options);
  Trained trained{path, 0, {texts.begin(), texts.end()}, {}, nullptr};
  for (int64_t c = 0; model.options.family != Family::gpt && c < model.options.classes; ++c)
    trained.classes.push_back(std::to_string(c));
  trained.names_classes = false;
  trained.network = make_network(model.options, model.tensors, path);
  trained.vocabulary = model.options.vocabulary;
  return trained;
}

// The data settings of the run, some of them replaced.
DataOptions data_options_of(const Trained& trained,
                            const std::map<std::string, std::string>& changed) {
  DataOptions options;
  set_all(data_settings(), trained.config, options);
  set_all(data_settings(), changed, options, "--");
  return options;
}

// The precision of the training that wrote the checkpoint.
Precision precision_in(const nlohmann::json& state) {
  const auto training = state.find("training");
  if (training == state.end()) return Precision::float32;
  const auto text = training->value("precision", std::string());
  return text.empty() ? Precision::float32 : SettingValue{"precision", text}.one_of(kPrecisions);
}

}  // namespace

Trained load_trained(const std::string& path, std::optional<Precision> precision) {
  if (std::filesystem::is_regular_file(path))
    return load_converted(path, precision.value_or(Precision::float32));
  const auto found = find_checkpoint(path);
  Trained trained{found.path, found.manifest.step, {}, {}, nullptr};
  const auto& state = found.manifest.state;
  auto run_precision = Precision::float32;
  try {
    trained.config = state.at("config").get<std::map<std::string, std::string>>();
    trained.classes = state.at("classes").get<std::vector<std::string>>();
    trained.vocabulary = state.value("vocabulary", int64_t{0});
    trained.features = state.value("features", std::vector<std::string>());
    run_precision = precision_in(state);
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(join(found.path, ": was not written by `translution train`"));
  }
  auto model = read_model(trained.config);
  model.precision = precision ? *precision : run_precision;
  const auto weights = load_weights(found, weights_held_for(model));
  trained.network = make_network(model, weights.content.model, found.path);
  if (trained.vocabulary == 0) trained.vocabulary = trained.network->options().vocabulary;
  return trained;
}

PictureFormat picture_format(const ModelOptions& model) {
  return {model.channels, model.image_size[0], model.image_size[1]};
}

CloudFormat cloud_format(const Trained& trained) {
  const auto& model = trained.network->options();
  require(model.family == Family::cloud, "expected a cloud model for points, got ", model.name());
  return {model.axes, model.channels, trained.features, data_options_of(trained, {}).max_points};
}

torch::Tensor load_picture(const ModelOptions& model, const std::string& file) {
  require(model.family == Family::vit, "expected a vit model for pictures, got ", model.name());
  const auto format = picture_format(model);
  auto input = torch::empty({1, format.channels, format.rows, format.cols});
  picture_values(fit_picture(read_image_bytes(file), file, format), format.channels,
                 input.data_ptr<float>());
  return input;
}

DataSource open_data_of(const Trained& trained, const std::map<std::string, std::string>& changed,
                        const std::function<void(const std::string&)>& report) {
  const auto& model = trained.network->options();
  auto options = data_options_of(trained, changed);
  if (const auto found = trained.config.find("seed"); found != trained.config.end())
    options.seed = SettingValue{"seed", found->second}.number();
  options.length = model.length;
  options.image_size = static_cast<int>(model.image_size.front());
  options.report = report;
  auto source = open_data(options);
  check_data_of(trained, source, options.data);
  return source;
}

}  // namespace translution
