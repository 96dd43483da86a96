#pragma once

#include "apps/translution/serve/http.h"
#include "apps/translution/serve/models.h"

namespace translution::serve {

/// Two runs of 6x4 grey pixels on a 3x2 grid, and one without a checkpoint, without any networks. A
/// picture's class is the brightness of its upper left pixel: "dark" or "light".
class FakeModels : public Models {
 public:
  std::vector<RunFacts> runs() override {
    RunFacts run{"first",
                 "runs/first",
                 "",
                 "vit-tiny/2",
                 "translution",
                 12,
                 345,
                 {"dark", "light"},
                 {1, 6, 4},
                 3,
                 2,
                 true,
                 2,
                 1};
    RunFacts second = run;
    second.name = "second";
    RunFacts third;
    third.name = "third";
    third.problem = "no checkpoint yet";
    return {run, second, third};
  }
  std::vector<float> predict(size_t, const RgbImage& picture) override {
    if (busy) throw Refusal(kBusy, "busy");
    const float light = static_cast<float>(picture.pixels.at(0)) / 255;
    return {1 - light, light};
  }
  AttentionMaps attend(size_t, const RgbImage&, int64_t query) override {
    const std::vector<float> head{static_cast<float>(query), 0, 0, 0, 0, 0.12345F};
    return {{{head}, {head}}, {}, {}};
  }
  PlaceMap map(size_t, const RgbImage& image, int64_t known) override {
    PlaceMap map{6 - image.rows + 1, 4 - image.cols + 1, 2, {{0, 1, 0.75F}, {1, 0, 0.5F}}};
    map.cells.erase(map.cells.begin(), map.cells.begin() + std::min<int64_t>(known, 2));
    return map;
  }
  std::vector<ReportNorms> norms(size_t) override {
    return {{"layer 1 query", 1, 2, {0.5, 1}, {{"cls", 2}}}};
  }
  Sample sample(int64_t index, const std::optional<std::string>& label) override {
    return {{1, 1, {7, 7, 7}}, label.value_or("dark"), index, 3};
  }
  TrainingLog log(size_t) override {
    TrainingLog log;
    log.step = 3;
    log.series = {{"loss", "train", {{3, 0.5}}}};
    return log;
  }

  bool busy = false;
};

}  // namespace translution::serve
