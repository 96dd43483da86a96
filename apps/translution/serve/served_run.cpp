#include "served_run.h"

#include <c10/util/ScopeExit.h>

#include <filesystem>

#include "translution/core/error.h"
#include "translution/models/cost.h"
#include "translution/models/memory_check.h"
#include "translution/nn/score_parts.h"
#include "translution/train/device.h"
#include "translution/train/run_report.h"

namespace translution::serve {

using namespace detail;

namespace {

namespace fs = std::filesystem;

constexpr const char* kNoCheckpoint = "no checkpoint yet";

// The target of the link to the newest checkpoint; empty if there is none.
std::string newest_checkpoint(const std::string& path) {
  std::error_code error;
  return fs::read_symlink(path + "/checkpoints/last", error).string();
}

// A training that has begun: it has a configuration, and will have a checkpoint.
bool has_begun(const std::string& path) {
  return fs::exists(path + "/config.toml") && newest_checkpoint(path).empty();
}

std::string name_of_path(const std::string& path) {
  const auto normal = fs::path(path).lexically_normal();
  const auto name = normal.has_filename() ? normal.filename() : normal.parent_path().filename();
  return name.empty() ? path : name.string();
}

// [heads, patches] as rows of numbers.
std::vector<std::vector<float>> rows_of(const torch::Tensor& values) {
  const auto on_cpu = values.to(torch::kCPU, torch::kFloat).contiguous();
  std::vector<std::vector<float>> rows;
  for (int64_t row = 0; row < on_cpu.size(0); ++row) {
    const float* begin = on_cpu.data_ptr<float>() + row * on_cpu.size(1);
    rows.emplace_back(begin, begin + on_cpu.size(1));
  }
  return rows;
}

}  // namespace

ServedRun::ServedRun(const std::string& path, std::optional<Precision> precision,
                     const std::string& device)
    : path_(path), device_(device), precision_(precision) {
  facts_.name = name_of_path(path);
  facts_.directory = path;
  facts_.problem = kNoCheckpoint;
  if (!has_begun(path)) load();
}

void ServedRun::load() {
  const auto newest = newest_checkpoint(path_);
  auto trained = load_trained(path_, precision_);
  const auto& model = trained.network->options();
  require(model.family == Family::vit, path_, " holds ", model.name(),
          "; the page shows images, which need a vit model; try `translution generate`");
  require_memory_to_evaluate(model, 1, "choose a smaller model");
  trained.network->to(find_device(device_));
  facts_.problem.clear();
  facts_.model = model.name();
  facts_.method = name_of(kMethods, model.position.method);
  facts_.step = trained.step;
  facts_.parameters = model_cost(model).parameters;
  facts_.classes = trained.classes;
  facts_.format = picture_format(model);
  facts_.rows = model.grid()[0], facts_.cols = model.grid()[1];
  facts_.cls = model.has_cls();
  facts_.layers = model.architecture.depth, facts_.heads = model.architecture.heads;
  trained_ = std::move(trained);
  newest_ = newest;
}

bool ServedRun::refresh() {
  const auto newest = newest_checkpoint(path_);
  if (newest.empty() || newest == newest_) return false;
  try {
    load();
    return true;
  } catch (const std::exception& error) {
    if (!trained_) facts_.problem = error.what();
    newest_ = newest;  // is not tried again
    return !trained_;
  }
}

void ServedRun::reject(const std::string& problem) {
  trained_.reset();
  facts_.problem = problem;
}

torch::Tensor ServedRun::input(const std::vector<RgbImage>& pictures) {
  const auto& format = facts_.format;
  auto batch = torch::empty(
      {static_cast<int64_t>(pictures.size()), format.channels, format.rows, format.cols});
  const int64_t values = format.channels * format.rows * format.cols;
  for (size_t p = 0; p < pictures.size(); ++p)
    picture_values(pictures[p], format.channels, batch.data_ptr<float>() + p * values);
  return batch;
}

std::vector<std::vector<float>> ServedRun::predict(const std::vector<RgbImage>& pictures,
                                                   const std::function<void()>& between) {
  torch::NoGradGuard no_grad;
  auto& network = *trained_->network;
  auto& hook = network.backbone()->between_blocks;
  hook = between;
  const auto reset = c10::make_scope_exit([&] { hook = nullptr; });
  return rows_of(network.forward(input(pictures)).softmax(1));
}

AttentionMaps ServedRun::attend(const RgbImage& picture, int64_t query) {
  torch::NoGradGuard no_grad;
  auto& vit = *trained_->network->vit();
  const int64_t cls = facts_.cls ? 1 : 0, patches = facts_.rows * facts_.cols;
  const bool mean = query < 0 && !facts_.cls;
  const int64_t row = query < 0 ? 0 : query + cls;
  auto x = vit.embed(input({picture}).to(trained_->network->device()));
  AttentionMaps maps;
  bool has_parts = false;
  for (size_t layer = 0; layer < vit.backbone->blocks->size(); ++layer) {
    auto& block = vit.backbone->blocks->at<BlockImpl>(layer);
    const auto [y, map] = block.forward_with_map(x);
    const auto weights = mean ? map[0].mean(1) : map[0].select(1, row);  // [heads,N]
    maps.weights.push_back(rows_of(weights.narrow(1, cls, patches)));
    const auto parts = mean ? ScoreParts() : score_parts(*block.attention, block.norm1(x), row);
    const bool both = parts.shared.defined() && parts.relative.defined();
    has_parts = has_parts || both;
    maps.shared.emplace_back();
    maps.relative.emplace_back();
    if (both) {
      maps.shared.back() = rows_of(parts.shared.narrow(1, cls, patches));
      maps.relative.back() = rows_of(parts.relative.narrow(1, cls, patches));
    }
    x = y;
  }
  if (!has_parts) maps.shared.clear(), maps.relative.clear();
  return maps;
}

std::vector<ReportNorms> ServedRun::norms() { return matrix_norms(*trained_->network); }

}  // namespace translution::serve
