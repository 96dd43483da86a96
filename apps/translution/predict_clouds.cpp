#include "predict_clouds.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "json_text.h"
#include "table.h"
#include "translution/data/batch_order.h"
#include "translution/train/evaluate.h"

namespace translution::cli {

namespace {

constexpr int64_t kBatch = 32, kMaxListed = 5;

using Json = nlohmann::ordered_json;

// Outputs of all clouds: probabilities [clouds,classes], or numbers [clouds] in the data's unit.
torch::Tensor outputs_of(const Trained& trained, const std::vector<NamedCloud>& clouds) {
  const auto& model = trained.network->options();
  std::vector<torch::Tensor> outputs;
  const auto data = clouds_as_data(clouds);
  BatchOrder order(data->size(), evaluation_order(kBatch));
  while (const auto plan = order.next()) {
    const auto batch = data->load(*plan);
    const auto output =
        trained.network->forward(batch.input, {}, points_of(batch)).to(torch::kCPU, torch::kDouble);
    outputs.push_back(model.predicts_number() ? output * model.target_scale + model.target_mean
                                              : output.softmax(1));
  }
  return torch::cat(outputs);
}

// The likeliest classes and their probabilities.
Json classes_of(const torch::Tensor& probabilities, const std::vector<std::string>& names) {
  const auto [best, indices] = probabilities.topk(std::min(kMaxListed, probabilities.size(0)));
  auto classes = Json::array();
  for (int64_t k = 0; k < best.size(0); ++k)
    classes.push_back(
        {{"class", names.at(indices[k].item<int64_t>())}, {"probability", best[k].item<double>()}});
  return classes;
}

Json json_of(const NamedCloud& cloud, const torch::Tensor& output, const Trained& trained) {
  Json json{{"cloud", cloud.name}, {"points", cloud.cloud.size()}};
  if (!cloud.target.empty()) json["target"] = cloud.target;
  if (output.dim() == 0)
    json["number"] = output.item<double>();
  else
    json["classes"] = classes_of(output, trained.classes);
  return json;
}

void print_table(const Json& clouds) {
  Table table({{"cloud"},
               {"points", Align::right},
               {"number", Align::right},
               {"class"},
               {"%", Align::right},
               {"target", clouds[0].contains("number") ? Align::right : Align::left}});
  for (const auto& cloud : clouds) {
    std::string number, name, percent;
    if (cloud.contains("number")) {
      number = fmt::format("{:.6g}", cloud["number"].get<double>());
    } else {
      name = cloud["classes"][0]["class"];
      percent = fmt::format("{:.2f}", 100 * cloud["classes"][0]["probability"].get<double>());
    }
    table.add({cloud["cloud"], std::to_string(cloud["points"].get<int64_t>()), number, name,
               percent, cloud.value("target", "")});
  }
  fmt::print("{}", table.str());
}

}  // namespace

void predict_clouds(const Trained& trained, const std::vector<std::string>& files, bool json) {
  std::vector<NamedCloud> clouds;
  for (const auto& file : files) {
    auto more = read_clouds(file, cloud_format(trained));
    std::move(more.begin(), more.end(), std::back_inserter(clouds));
  }
  const auto outputs = outputs_of(trained, clouds);
  auto predictions = Json::array();
  for (size_t c = 0; c < clouds.size(); ++c)
    predictions.push_back(json_of(clouds[c], outputs[static_cast<int64_t>(c)], trained));
  if (json)
    fmt::print("{}", json_text(predictions));
  else
    print_table(predictions);
}

}  // namespace translution::cli
