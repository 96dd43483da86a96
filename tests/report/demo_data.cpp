#include "tests/report/demo_data.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "translution/core/error.h"
#include "translution/core/random.h"

namespace translution {

using namespace detail;

namespace {

constexpr int kSide = 84;
constexpr int64_t kSteps = 2000, kPatches = 7, kOffsets = 13, kClasses = 10;
constexpr double kStepsPerEpoch = 235;

struct Kind {
  const char* name;
  const char* method;
  double floor;  // of the training loss
  double moved;  // accuracy on moved digits
  const char* parameters;
};

constexpr Kind kKinds[] = {
    {"self-attention", "self-attention", 0.12, 0.31, "2,672,458"},
    {"alpha-translution", "alpha-translution", 0.03, 0.93, "4,611,274"},
    {"translution", "translution", 0.015, 0.97, "38,214,538"},
};

// ----------------------------------------------------------------------------------- curves

double loss_at(const Kind& kind, double step) {
  return kind.floor + 2.28 * std::exp(-step / 180) + 0.3 * std::exp(-step / 700);
}

double accuracy_at(double best, double step) {
  return 0.1 + (best - 0.1) * (1 - std::exp(-step / 350));
}

double learning_rate_at(double step) {
  if (step < 100) return 1e-3 * step / 100;
  return 0.5e-3 * (1 + std::cos(M_PI * (step - 100) / (kSteps - 100)));
}

std::vector<ReportSeries> make_series(const Kind& kind, uint64_t seed) {
  Random random({seed, 1});
  ReportSeries loss{"loss", "train", {}}, rate{"learning rate", "train", {}};
  ReportSeries speed{"samples/s", "train", {}};
  ReportSeries loss_static{"loss", "static", {}}, loss_moved{"loss", "dynamic", {}};
  ReportSeries top_static{"top-1", "static", {}}, top_moved{"top-1", "dynamic", {}};
  for (int64_t step = 1; step <= kSteps; ++step) {
    const double epoch = step / kStepsPerEpoch, noise = std::exp(0.25 * random.normal());
    loss.points.push_back({step, epoch, loss_at(kind, step) * noise});
    rate.points.push_back({step, epoch, learning_rate_at(step)});
    speed.points.push_back({step, epoch, 1900 - 500.0 * seed + 40 * random.normal()});
    if (step % 100 != 0) continue;
    loss_static.points.push_back({step, epoch, 1.1 * loss_at(kind, step)});
    loss_moved.points.push_back(
        {step, epoch, loss_at(kind, step) + 2.2 * (1 - accuracy_at(kind.moved, step))});
    top_static.points.push_back({step, epoch, accuracy_at(0.99 - kind.floor / 10, step)});
    top_moved.points.push_back({step, epoch, accuracy_at(kind.moved, step)});
  }
  return {loss, loss_static, loss_moved, top_static, top_moved, rate, speed};
}

// ----------------------------------------------------------------------------------- images

// The segments of each digit on a seven-segment display, one bit each: top, upper left, upper
// right, middle, lower left, lower right, bottom.
constexpr std::array<int, kClasses> kStrokes = {0b1110111, 0b0100100, 0b1011101, 0b1101101,
                                                0b0101110, 0b1101011, 0b1111011, 0b0100101,
                                                0b1111111, 0b1101111};
constexpr double kLines[7][4] = {{0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 1, 1}, {0, 1, 1, 1},
                                 {0, 1, 0, 2}, {1, 1, 1, 2}, {0, 2, 1, 2}};

double distance(double x, double y, const double (&line)[4]) {
  const double dx = line[2] - line[0], dy = line[3] - line[1];
  const double t =
      std::clamp(((x - line[0]) * dx + (y - line[1]) * dy) / (dx * dx + dy * dy), 0.0, 1.0);
  return std::hypot(x - line[0] - t * dx, y - line[1] - t * dy);
}

RgbImage make_digit(int64_t digit, double top, double left, double slant) {
  RgbImage image{kSide, kSide, {}};
  for (int64_t row = 0; row < kSide; ++row)
    for (int64_t col = 0; col < kSide; ++col) {
      const double y = (row - top) / 9, x = (col - left) / 9 + slant * (y - 1);
      double nearest = 9;
      for (int stroke = 0; stroke < 7; ++stroke)
        if (kStrokes[digit] >> stroke & 1)
          nearest = std::min(nearest, distance(x, y, kLines[stroke]));
      const double ink = std::clamp(1.6 - nearest / 0.16, 0.0, 1.0);
      image.pixels.insert(image.pixels.end(), 3, static_cast<uint8_t>(255 * ink));
    }
  return image;
}

std::vector<ReportSample> make_samples(uint64_t seed) {
  Random random({seed, 2});
  std::vector<ReportSample> samples;
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t digit = random.below(kClasses);
    const bool right = !random.chance(0.17);
    const int64_t guess = right ? digit : (digit + 1 + random.below(9)) % kClasses;
    samples.push_back(
        {make_digit(digit, random.uniform(4, 60), random.uniform(4, 66), random.uniform(-0.1, 0.3)),
         std::to_string(digit), std::to_string(guess),
         right ? random.uniform(0.8, 1.0) : random.uniform(0.35, 0.7)});
  }
  return samples;
}

// --------------------------------------------------------------------------------- matrices

ReportConfusion make_confusion(const Kind& kind, uint64_t seed) {
  Random random({seed, 3});
  ReportConfusion confusion;
  for (int64_t truth = 0; truth < kClasses; ++truth) {
    confusion.classes.push_back(std::to_string(truth));
    for (int64_t guess = 0; guess < kClasses; ++guess) {
      const double wrong = 1000 * (1 - kind.moved) / 9 * random.uniform(0, 2);
      confusion.counts.push_back(
          std::lround(truth == guess ? 1000 * kind.moved - random.uniform(0, 40) : wrong));
    }
  }
  return confusion;
}

ReportAttention make_attention(uint64_t seed, int64_t query) {
  Random random({seed, 4, static_cast<uint64_t>(query + 1)});
  ReportAttention attention;
  attention.caption = query < 0 ? "A 3, seen from the class token" : "A 3, seen from patch 25";
  attention.picture = {make_digit(3, 30, 38, 0.1), kPatches, kPatches, query, {}};
  for (int64_t layer = 1; layer <= 3; ++layer)
    for (int64_t head = 1; head <= 6; ++head) {
      const double row = random.uniform(2, 5), col = random.uniform(2, 5);
      AttentionPicture::Head map{layer, head, {}};
      for (int64_t i = 0; i < kPatches * kPatches; ++i)
        map.weights.push_back(
            0.1 * std::exp(-std::hypot(i / kPatches - row, i % kPatches - col) / layer) +
            0.004 * random.uniform());
      attention.picture.heads.push_back(map);
    }
  return attention;
}

ReportNorms make_norms(const std::string& table, uint64_t seed) {
  Random random({seed, 5});
  ReportNorms norms{table, kOffsets, kOffsets, {}, {}};
  const double width = random.uniform(1.5, 5);
  for (int64_t i = 0; i < kOffsets * kOffsets; ++i)
    norms.values.push_back(
        3 + 4 * std::exp(-std::hypot(i / kOffsets - 6.0, i % kOffsets - 6.0) / width) +
        0.15 * random.normal());
  norms.others = {{"class token", 6.21}, {"to it", 4.93}, {"from it", 5.4}};
  return norms;
}

// ------------------------------------------------------------------------------------- runs

ReportRun make_run(const Kind& kind, uint64_t seed) {
  ReportRun run;
  run.name = kind.name;
  run.summary = {{"best top-1, static", join(97 + seed, ".", 41 + seed, " %")},
                 {"best top-1, dynamic", join(100 * kind.moved, " %")},
                 {"last training loss", join(kind.floor)},
                 {"parameters", kind.parameters},
                 {"training time", join(3 + 2 * seed, " min 12 s")},
                 {"machine", "2 cores, AVX-512"}};
  run.config = {{"method", kind.method}, {"model", "vit-a/12"},    {"image-size", "84"},
                {"channels", "1"},       {"data", "digits"},       {"train-on", "static"},
                {"batch", "256"},        {"steps", "2000"},        {"lr", "0.001"},
                {"warmup", "100"},       {"schedule", "cosine"},   {"weight-decay", "0.05"},
                {"clip", "1"},           {"label-smoothing", "0"}, {"seed", join(seed)},
                {"threads", "2"}};
  run.series = make_series(kind, seed);
  run.evaluations.push_back({"dynamic",
                             make_confusion(kind, seed),
                             make_samples(seed),
                             {make_attention(seed, -1), make_attention(seed, 24)}});
  uint64_t number = 10 * seed;
  for (const char* layer : {"layer 1", "layer 2"})
    for (const char* role : {"query", "key", "value"})
      if (kind.method != std::string("self-attention"))
        run.norms.push_back(make_norms(join(layer, " ", role), ++number));
  return run;
}

}  // namespace

ReportData demo_report() {
  ReportData data;
  data.title = "Digits that move";
  data.subtitle = "Three methods trained on centred digits, evaluated on moved ones.";
  uint64_t seed = 0;
  for (const Kind& kind : kKinds) data.runs.push_back(make_run(kind, seed++));
  return data;
}

}  // namespace translution
