#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "json_text.h"
#include "model_flags.h"
#include "predict_clouds.h"
#include "table.h"
#include "threads.h"
#include "translution/core/cpu_info.h"
#include "translution/core/error.h"
#include "translution/train/device.h"
#include "translution/train/trained.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr int64_t kShown = 5;
constexpr const char* kPredictExamples =
    "Prints the five likeliest classes of each image. For a model of colour images, the image is\n"
    "resized, centre-cropped and normalised as in evaluation. For a model of digits, it is\n"
    "converted to grey and fitted to the canvas.\n"
    "\n"
    "For a model of points, prints the class or the number of each cloud: of a PLY file, a "
    "molecule\n"
    "in an .xyz file, or of all clouds in a text such as val.txt; 'targets none' in its first "
    "lines\n"
    "if they are not known.\n"
    "\n"
    "Examples:\n"
    "  translution predict runs/flowers rose.jpg\n"
    "  translution predict runs/digits seven.png --json\n"
    "  translution predict runs/qm7 water.xyz ethanol.xyz";

struct PredictFlags {
  explicit PredictFlags(Command command) : precision(command, "the run's"), device(command) {
    command.argument("RUN", path, "run directory, checkpoint or file of weights");
    command.argument("FILE", files, "JPEG or PNG file; for points .ply, .xyz or text");
    command.flag("--json", json, "print JSON");
  }

  PrecisionFlag precision;
  DeviceFlag device;
  std::string path;
  std::vector<std::string> files;
  bool json = false;
};

void predict_images(const PredictFlags& flags, const Trained& trained) {
  const auto& model = trained.network->options();
  auto json = nlohmann::ordered_json::array();
  for (const auto& file : flags.files) {
    const auto all = trained.network->forward(load_picture(model, file)).softmax(1)[0];
    const auto [probabilities, indices] = all.topk(std::min(kShown, model.classes));
    Table table({{file}, {"%", Align::right}});
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (int64_t k = 0; k < probabilities.size(0); ++k) {
      const auto& name = trained.classes.at(indices[k].item<int64_t>());
      const double probability = probabilities[k].item<double>();
      table.add({name, fmt::format("{:.2f}", 100 * probability)});
      classes.push_back({{"class", name}, {"probability", probability}});
    }
    json.push_back({{"file", file}, {"classes", classes}});
    if (!flags.json) fmt::print("{}", table.str());
  }
  if (flags.json) fmt::print("{}", json_text(json));
}

void run_predict(const PredictFlags& flags) {
  use_threads(usable_cores());
  const auto device = find_device(flags.device.read());
  const auto trained = load_trained(flags.path, flags.precision.read());
  trained.network->to(device);
  const auto& model = trained.network->options();
  require(model.family != Family::gpt, flags.path, " holds ", model.name(),
          ", which continues text; use `translution generate`");
  torch::NoGradGuard no_grad;
  if (model.family == Family::cloud)
    predict_clouds(trained, flags.files, flags.json);
  else
    predict_images(flags, trained);
}

}  // namespace

void add_predict(Command program) {
  auto command = program.add_command("predict", "Classify images, or points");
  const auto flags = std::make_shared<PredictFlags>(command);
  command.footer(kPredictExamples);
  command.run([flags] { run_predict(*flags); });
}

}  // namespace translution::cli
