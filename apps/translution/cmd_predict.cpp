#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "json_text.h"
#include "model_flags.h"
#include "run_directory.h"
#include "table.h"
#include "threads.h"
#include "translution/core/cpu_info.h"
#include "translution/core/error.h"
#include "translution/data/augment.h"
#include "translution/data/image_file.h"
#include "translution/data/resample.h"

namespace translution::cli {
namespace {

constexpr int64_t kShown = 5;
constexpr const char* kPredictExamples =
    "A model of colour images sees the picture as in evaluation: resized, the middle cropped,\n"
    "normalised. One of digits sees it in grey, fitted to its canvas.\n"
    "\n"
    "Examples:\n"
    "  translution predict runs/flowers rose.jpg\n"
    "  translution predict runs/digits seven.png --json";

struct PredictFlags {
  explicit PredictFlags(Command command) : precision(command, "the run's") {
    command.argument("RUN", path, "run directory, checkpoint or file of weights");
    command.argument("IMAGE", files, "JPEG or PNG files");
    command.flag("--json", json, "print JSON");
  }

  PrecisionFlag precision;
  std::string path;
  std::vector<std::string> files;
  bool json = false;
};

// [1,channels,rows,cols]
torch::Tensor picture(const std::string& file, const ModelOptions& model) {
  const int64_t rows = model.image_size[0], cols = model.image_size[1];
  auto input = torch::empty({1, model.channels, rows, cols});
  if (model.channels == 3) {
    require(rows == cols, "predict: wanted a model of square images, this one has ",
            times(model.image_size));
    normalise(evaluation_image(read_image_bytes(file), file, static_cast<int>(rows)),
              input.data_ptr<float>());
    return input;
  }
  const auto image = read_image(file);
  const auto small =
      resample(image, {0, 0, static_cast<double>(image.rows), static_cast<double>(image.cols)},
               static_cast<int>(rows), static_cast<int>(cols), false);
  float* to = input.data_ptr<float>();
  for (int64_t p = 0; p < rows * cols; ++p)
    to[p] = static_cast<float>(small.pixels[3 * p] + small.pixels[3 * p + 1] +
                               small.pixels[3 * p + 2]) /
            (3 * 255);
  return input;
}

void run_predict(const PredictFlags& flags) {
  use_threads(usable_cores());
  const auto trained = load_trained(flags.path, flags.precision.read());
  const auto& model = trained.network->options();
  require(model.family == Family::vit, flags.path, " holds ", model.name(),
          "; images want a vit model");
  torch::NoGradGuard no_grad;
  auto json = nlohmann::ordered_json::array();
  for (const auto& file : flags.files) {
    const auto shares = trained.network->forward(picture(file, model)).softmax(1)[0];
    const auto [values, places] = shares.topk(std::min(kShown, model.classes));
    Table table({{file}, {"%", Align::right}});
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (int64_t k = 0; k < values.size(0); ++k) {
      const auto& name = trained.classes.at(places[k].item<int64_t>());
      const double share = values[k].item<double>();
      table.add({name, fmt::format("{:.2f}", 100 * share)});
      classes.push_back({{"class", name}, {"probability", share}});
    }
    json.push_back({{"file", file}, {"classes", classes}});
    if (!flags.json) fmt::print("{}", table.str());
  }
  if (flags.json) fmt::print("{}", json_text(json));
}

}  // namespace

void add_predict(Command program) {
  auto command = program.add_command("predict", "Which class an image belongs to");
  const auto flags = std::make_shared<PredictFlags>(command);
  command.footer(kPredictExamples);
  command.run([flags] { run_predict(*flags); });
}

}  // namespace translution::cli
