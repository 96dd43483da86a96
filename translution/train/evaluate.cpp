#include "translution/train/evaluate.h"

#include <cmath>

#include "translution/data/loader.h"
#include "translution/ops/cross_entropy.h"

namespace translution {
namespace {

// Columns of the figures of batches.
enum { kCount, kLoss, kClasses, kTop1, kTop5, kNumbers, kError, kFigures };

// Logits with one row per prediction: [B,classes] or [B*n,vocabulary].
torch::Tensor rows_of(const torch::Tensor& logits) {
  return logits.dim() == 3 ? logits.flatten(0, 1) : logits;
}

// The number of rows whose target is among the `k` largest logits.
int64_t hits(const torch::Tensor& rows, const torch::Tensor& target, int64_t k) {
  const auto best = std::get<1>(rows.topk(std::min(k, rows.size(1)), 1));
  return best.eq(target.unsqueeze(1)).sum().item<int64_t>();
}

// The sum of absolute errors in the unit of the data, of which the model's own is another.
double total_error(const torch::Tensor& output, const torch::Tensor& target,
                   const ModelOptions& model, TargetUnit unit) {
  const auto found = output.to(torch::kDouble) * model.target_scale + model.target_mean;
  const auto expected = target.to(torch::kDouble) * unit.scale + unit.mean;
  return (found - expected).abs().sum().item<double>();
}

// Evaluation mode without gradients for the lifetime of this object. A module already in evaluation
// mode is not written to, because other threads may be reading it.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module)
      : module_(module), training_(module.is_training()) {
    if (training_) module.eval();
  }
  ~EvaluationMode() {
    if (training_) module_.train();
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& module_;
  const bool training_;
  torch::NoGradGuard no_grad_;
};

}  // namespace

torch::Tensor loss_of(const torch::Tensor& output, const torch::Tensor& target,
                      const LossOptions& options) {
  const auto moved = target.to(output.device());
  if (output.dim() == 1) {
    const auto error = output - moved;
    return (options.number == NumberLoss::squared ? error.square() : error.abs()).mean();
  }
  return cross_entropy(rows_of(output), output.dim() == 3 ? moved.flatten() : moved,
                       options.label_smoothing);
}

double Evaluation::perplexity() const { return std::exp(loss); }

torch::Tensor no_figures(const Dataset& dataset, int64_t batch) {
  const BatchOrder order(dataset.size(), evaluation_order(batch));
  return torch::zeros({order.batches_per_epoch(), kFigures}, torch::kDouble);
}

torch::Tensor evaluate_batches(Network& network, const std::shared_ptr<const Dataset>& dataset,
                               const EvaluationPart& part, std::vector<torch::Tensor>* predictions,
                               const std::function<void(int64_t)>& done) {
  const EvaluationMode mode(network.module());
  auto figures = no_figures(*dataset, part.batch);
  if (part.first >= figures.size(0)) return figures;
  auto order = evaluation_order(part.batch);
  order.index = part.first, order.every = part.every;
  Loader loader(dataset, {order, part.workers});
  const bool of_numbers = network.options().predicts_number();
  while (const auto loaded = loader.next()) {
    auto* const sum = figures.data_ptr<double>() + kFigures * loaded->plan.index;
    const auto logits = network.forward(loaded->batch.input, {}, points_of(loaded->batch));
    const auto rows = rows_of(logits), target = loaded->batch.target.flatten().to(rows.device());
    const auto count = static_cast<double>(rows.size(0));
    sum[kCount] = count;
    sum[kLoss] = loss_of(logits, loaded->batch.target).item<double>() * count;
    if (of_numbers) {
      sum[kNumbers] = count;
      sum[kError] = total_error(logits, target, network.options(), part.unit);
    }
    if (logits.dim() == 2) {
      sum[kClasses] = count;
      sum[kTop1] = static_cast<double>(hits(rows, target, 1));
      sum[kTop5] = static_cast<double>(hits(rows, target, 5));
      if (predictions != nullptr) predictions->push_back(rows.argmax(1).to(torch::kCPU));
    }
    if (done) done(loaded->batch.input.size(0));
  }
  return figures;
}

Evaluation evaluation_of(const torch::Tensor& figures) {
  Evaluation sum;
  for (int64_t batch = 0; batch < figures.size(0); ++batch) {
    const auto* const of_batch = figures.data_ptr<double>() + kFigures * batch;
    sum.count += static_cast<int64_t>(of_batch[kCount]);
    sum.of_classes |= of_batch[kClasses] > 0;
    sum.of_numbers |= of_batch[kNumbers] > 0;
    sum.loss += of_batch[kLoss], sum.top1 += of_batch[kTop1], sum.top5 += of_batch[kTop5];
    sum.mae += of_batch[kError];
  }
  const auto count = static_cast<double>(std::max<int64_t>(1, sum.count));
  sum.loss /= count, sum.top1 /= count, sum.top5 /= count, sum.mae /= count;
  return sum;
}

Evaluation evaluate(Network& network, const std::shared_ptr<const Dataset>& dataset, int64_t batch,
                    int64_t workers, const std::function<void(int64_t)>& done, TargetUnit unit) {
  std::vector<torch::Tensor> predictions;
  auto result =
      evaluation_of(evaluate_batches(network, dataset, {batch, workers, unit}, &predictions, done));
  if (!predictions.empty()) result.predictions = torch::cat(predictions);
  return result;
}

}  // namespace translution
