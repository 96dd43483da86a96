#include "translution/train/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "translution/core/error.h"
#include "translution/core/units.h"
#include "translution/data/limit.h"
#include "translution/data/loader.h"
#include "translution/io/atomic_file.h"
#include "translution/models/cost.h"
#include "translution/models/memory_check.h"
#include "translution/train/device.h"
#include "translution/train/evaluate.h"
#include "translution/train/metrics.h"
#include "translution/train/trained.h"

namespace translution {

using namespace detail;

namespace {

constexpr uint64_t kSeed = 0;  // selects the evaluated samples
constexpr int64_t kSamples = 24, kBatch = 256, kMostEvaluated = 2000;

// ------------------------------------------------------------------------------------ curves

// The title of a metric's curves; null for metrics without one, as times and sizes.
const char* title_of(const std::string& metric) {
  if (metric == "loss" || metric == "perplexity") return metric == "loss" ? "loss" : "perplexity";
  if (metric == "top1") return "top-1 %";
  if (metric == "mae") return "mean absolute error";
  if (metric == "lr") return "learning rate";
  return nullptr;
}

void add_point(const Metrics& entry, const std::string& metric, double value, ReportRun& run) {
  const char* title = title_of(metric);
  if (title == nullptr) return;
  auto series = std::find_if(run.series.begin(), run.series.end(), [&](const ReportSeries& s) {
    return s.metric == title && s.split == entry.split;
  });
  if (series == run.series.end()) {
    run.series.push_back({title, entry.split, {}});
    series = run.series.end() - 1;
  }
  series->points.push_back({entry.step, entry.epoch, metric == "top1" ? 100 * value : value});
}

void add_curves(const std::vector<Metrics>& log, ReportRun& run) {
  for (const auto& entry : log)
    for (const auto& [name, value] : entry.values) add_point(entry, name, value, run);
}

// The last evaluation on each set.
void add_summary(const std::vector<Metrics>& log, ReportRun& run) {
  std::map<std::string, const Metrics*> last;
  for (const auto& entry : log) last[entry.split] = &entry;
  for (const auto& [split, entry] : last)
    for (const auto& [name, value] : entry->values) {
      if (name == "top1")
        run.summary.emplace_back("top-1 on " + split, fmt::format("{:.2f} %", 100 * value));
      else if (name == "mae")
        run.summary.emplace_back("error on " + split, fmt::format("{:.4g}", value));
      else if (name == "perplexity")
        run.summary.emplace_back("perplexity on " + split, fmt::format("{:.3f}", value));
      else if (name == "loss")
        run.summary.emplace_back("loss on " + split, fmt::format("{:.4f}", value));
      else if (name == share_metric(Precision::float32))
        run.summary.emplace_back("share of SGEMM", fmt::format("{:.0f} %", 100 * value));
      else if (name == share_metric(Precision::bf16))
        run.summary.emplace_back("share of bfloat16 products",
                                 fmt::format("{:.0f} %", 100 * value));
    }
}

// ---------------------------------------------------------------------------------- pictures

// An image [channels,rows,cols] with its values stretched to 0..255; grey has one channel.
RgbImage to_image(const torch::Tensor& pixels) {
  const auto low = pixels.min(), high = pixels.max();
  const auto bytes = ((pixels - low) / (high - low).clamp_min(1e-6) * 255)
                         .to(torch::kByte)
                         .expand({3, -1, -1})
                         .permute({1, 2, 0})
                         .contiguous();
  RgbImage image{static_cast<int>(bytes.size(0)), static_cast<int>(bytes.size(1)), {}};
  image.pixels.assign(bytes.data_ptr<uint8_t>(), bytes.data_ptr<uint8_t>() + bytes.numel());
  return image;
}

void count_confusions(const torch::Tensor& predicted, const torch::Tensor& target,
                      ReportConfusion& confusion) {
  const auto classes = static_cast<int64_t>(confusion.classes.size());
  for (int64_t s = 0; s < target.size(0); ++s)
    ++confusion.counts[target[s].item<int64_t>() * classes + predicted[s].item<int64_t>()];
}

// Takes every `stride`-th sample of the set: sets may be sorted by class.
void add_samples(const Trained& trained, const LoadedBatch& loaded, const torch::Tensor& shares,
                 int64_t stride, ReportEvaluation& evaluation) {
  const auto& batch = loaded.batch;
  for (int64_t s = 0; s < batch.input.size(0); ++s) {
    if (loaded.plan.samples[s] % stride != 0 || evaluation.samples.size() == kSamples) continue;
    const int64_t predicted = shares[s].argmax().item<int64_t>();
    evaluation.samples.push_back(
        {to_image(batch.input[s]), trained.classes.at(batch.target[s].item<int64_t>()),
         trained.classes.at(predicted), shares[s][predicted].item<double>()});
  }
}

// The attention of the class token, or else of the middle patch, in the first image.
void add_attention(Trained& trained, const Batch& batch, ReportEvaluation& evaluation) {
  const auto& model = trained.network->options();
  const auto grid = model.grid();
  const int64_t cls = model.has_cls() ? 1 : 0, patches = grid[0] * grid[1];
  const int64_t query = cls ? -1 : grid[0] / 2 * grid[1] + grid[1] / 2;
  AttentionPicture picture{to_image(batch.input[0]), grid[0], grid[1], query, {}};
  const auto maps = trained.network->vit()->attention_maps(
      batch.input.narrow(0, 0, 1).to(trained.network->device()));
  for (size_t layer = 0; layer < maps.size(); ++layer)
    for (int64_t head = 0; head < maps[layer].size(1); ++head) {
      const auto row = maps[layer][0][head][cls ? 0 : query]
                           .narrow(0, cls, patches)
                           .to(torch::kCPU, torch::kDouble)
                           .contiguous();
      picture.heads.push_back({static_cast<int64_t>(layer) + 1,
                               head + 1,
                               {row.data_ptr<double>(), row.data_ptr<double>() + patches}});
    }
  evaluation.attention.push_back(
      {cls ? "Attention of the class token" : "Attention of the middle patch", std::move(picture)});
}

// To the right and down: (row, column) of two axes, x and y of three.
AttentionPicture::Point drawn_at(const torch::Tensor& position) {
  const auto at = [&](int64_t axis) { return position[axis].item<double>(); };
  if (position.size(0) == 1) return {at(0), 0};
  return position.size(0) == 2 ? AttentionPicture::Point{at(1), at(0)}
                               : AttentionPicture::Point{at(0), -at(1)};
}

// The attention of the class token, or else of the point nearest the centre, in the first cloud.
void add_cloud_attention(Trained& trained, const Batch& batch, ReportEvaluation& evaluation) {
  const auto& model = trained.network->options();
  const auto device = trained.network->device();
  const auto mask =
      batch.mask.defined() ? batch.mask[0] : torch::ones({batch.input.size(1)}, torch::kBool);
  const auto features = batch.input[0].index({mask}).unsqueeze(0).to(device);
  const auto at = batch.positions[0].index({mask});
  const auto found =
      trained.network->cloud()->attention_maps(features, {at.unsqueeze(0).to(device)});
  const int64_t cls = model.has_cls() ? 1 : 0, points = at.size(0);
  const int64_t middle = (at - at.mean(0)).square().sum(1).argmin().item<int64_t>();
  AttentionPicture picture{{}, 0, 0, cls ? -1 : middle, {}};
  for (int64_t i = 0; i < points; ++i) picture.points.push_back(drawn_at(at[i]));
  const auto of_query = found.query.eq(cls ? 0 : middle).logical_and(found.key.ge(cls));
  const auto keys = found.key.masked_select(of_query) - cls;
  for (size_t layer = 0; layer < found.weights.size(); ++layer)
    for (int64_t head = 0; head < found.weights[layer].size(1); ++head) {
      const auto weights = found.weights[layer].select(1, head).masked_select(of_query);
      const auto row = torch::zeros({points}, torch::kDouble)
                           .index_copy(0, keys.cpu(), weights.to(torch::kCPU, torch::kDouble));
      picture.heads.push_back({static_cast<int64_t>(layer) + 1,
                               head + 1,
                               {row.data_ptr<double>(), row.data_ptr<double>() + points}});
    }
  evaluation.attention.push_back(
      {cls ? "Attention of the class token" : "Attention of the point in the middle",
       std::move(picture)});
}

// Loads every sample once.
ReportEvaluation describe_set(Trained& trained, const EvaluationSet& set) {
  const auto limited = take_samples(set.dataset, kMostEvaluated, kSeed);
  const int64_t stride = std::max<int64_t>(1, limited->size() / kSamples);
  const size_t classes = trained.classes.size();
  ReportEvaluation evaluation{set.name, {}, {}, {}};
  ReportConfusion confusion{trained.classes, std::vector<int64_t>(classes * classes)};
  const bool points = trained.network->options().family == Family::cloud;
  Loader loader(limited, {evaluation_order(kBatch), 1});
  while (const auto loaded = loader.next()) {
    if (points) {
      if (evaluation.attention.empty()) add_cloud_attention(trained, loaded->batch, evaluation);
      if (trained.network->options().predicts_number()) return evaluation;
    }
    const auto output = trained.network->forward(loaded->batch.input, {}, points_of(loaded->batch));
    const auto shares = output.softmax(1).to(torch::kCPU);
    if (!points) {
      if (evaluation.attention.empty()) add_attention(trained, loaded->batch, evaluation);
      add_samples(trained, *loaded, shares, stride, evaluation);
    }
    count_confusions(shares.argmax(1), loaded->batch.target, confusion);
  }
  evaluation.confusion = std::move(confusion);
  return evaluation;
}

// The norms of the matrices of a weight table [slots, in, out], arranged by offset.
ReportNorms norms_of(const std::string& name, const torch::Tensor& table,
                     const OffsetTable& offsets, const std::vector<int64_t>& grid) {
  const auto norm =
      table.detach().to(torch::kFloat).flatten(1).norm(2, 1).to(torch::kCPU, torch::kDouble);
  ReportNorms norms{name, grid.size() == 2 ? 2 * grid[0] - 1 : 1, 2 * grid.back() - 1, {}, {}};
  norms.values.assign(norms.rows * norms.cols, std::nan(""));
  for (int64_t slot = 0; slot < offsets.num_slots(); ++slot) {
    const auto offset = offsets.offset(slot);
    const double value = norm[slot].item<double>();
    if (!offset) {
      norms.others.emplace_back(offsets.slot_name(slot), value);
      continue;
    }
    const int64_t row = grid.size() == 2 ? offset->front() + grid[0] - 1 : 0;
    norms.values[row * norms.cols + offset->back() + grid.back() - 1] = value;
  }
  return norms;
}

void add_pictures(const std::string& directory, const RunReportOptions& options, ReportRun& run) {
  auto trained = load_trained(directory, options.precision);
  trained.network->to(find_device(options.device));
  torch::NoGradGuard no_grad;
  const auto source = open_data_of(trained, {}, options.report);
  const auto parameters = model_cost(trained.network->options()).parameters;
  run.summary.insert(run.summary.begin(), {"parameters", grouped(parameters)});
  run.config.assign(trained.config.begin(), trained.config.end());
  if (trained.network->options().precision != Precision::float32)
    run.config.emplace_back("precision",
                            name_of(kPrecisions, trained.network->options().precision));
  run.norms = matrix_norms(*trained.network);
  if (trained.network->options().family == Family::gpt) return;
  require_memory_to_evaluate(trained.network->options(), kBatch,
                             "use --curves-only, which does not load the model");
  for (const auto& set : source.evaluation) run.evaluations.push_back(describe_set(trained, set));
}

}  // namespace

std::vector<ReportNorms> matrix_norms(Network& network) {
  const auto& model = network.options();
  const Position& position = model.position;
  std::vector<ReportNorms> norms;
  if (!position.uses_offsets() || position.encoding != Encoding::relative ||
      (position.sharing != Sharing::none && model.family != Family::cloud))
    return norms;
  const auto layer_options = model.table_options(0);
  const auto grid = layer_options.grid();
  if (grid.size() > 2) return norms;
  const OffsetTable offsets(
      layer_options.position().offsets(grid, model.has_cls(), model.is_causal()));
  for (const auto& item : network.module().named_parameters()) {
    if (item.value().dim() != 3 || item.value().size(0) != offsets.num_slots()) continue;
    const auto layer = item.key().find("blocks.") + 7, dot = item.key().find('.', layer);
    const auto name =
        fmt::format("layer {} {}", std::stoll(item.key().substr(layer, dot - layer)) + 1,
                    item.key().substr(item.key().rfind('.') + 1));
    norms.push_back(norms_of(name, item.value(), offsets, grid));
  }
  return norms;
}

ReportRun describe_run(const std::string& directory, const RunReportOptions& options) {
  ReportRun run;
  run.name = std::filesystem::path(directory).lexically_normal().filename();
  if (run.name.empty()) run.name = directory;
  const auto log = read_metrics(directory + "/metrics.jsonl");
  add_curves(log, run);
  add_summary(log, run);
  if (options.pictures) add_pictures(directory, options, run);
  return run;
}

void write_run_report(const std::string& file, const std::vector<std::string>& directories,
                      const RunReportOptions& options) {
  find_device(options.device);  // throws before the first run is read
  ReportData data;
  data.title = directories.size() == 1 ? "Translution run" : "Translution runs";
  for (const auto& directory : directories) data.runs.push_back(describe_run(directory, options));
  write_file_atomically(file, make_report(data));
}

}  // namespace translution
