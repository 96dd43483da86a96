#include "translution/train/gradient_exchange.h"

#include <ATen/Parallel.h>
#include <omp.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/utils.h>

#include <algorithm>

namespace translution {

// Called by autograd when it has added to the gradient of a parameter.
class GradientExchange::Hook : public torch::autograd::FunctionPostHook {
 public:
  Hook(GradientExchange* exchange, size_t parameter) : exchange_(exchange), parameter_(parameter) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    exchange_->complete(parameter_);
    return outputs;
  }

 private:
  GradientExchange* const exchange_;
  const size_t parameter_;
};

GradientExchange::GradientExchange(std::vector<torch::Tensor> parameters, Sum sum, int64_t bucket)
    : parameters_(std::move(parameters)), sum_(std::move(sum)), gradients_(parameters_.size()) {
  int64_t room = 0;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    for (int64_t begin = 0, size = parameters_[p].numel(); begin < size;) {
      if (room == 0) buckets_.emplace_back(), room = bucket;
      const int64_t count = std::min(room, size - begin);
      buckets_.back().push_back({p, begin, count});
      begin += count, room -= count;
    }
    const auto node = torch::autograd::impl::grad_accumulator(parameters_[p]);
    hooks_.emplace_back(node, node->add_post_hook(std::make_unique<Hook>(this, p)));
  }
}

GradientExchange::~GradientExchange() {
  for (const auto& [node, key] : hooks_) node->del_post_hook(key);
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  changed_.notify_all();
  if (sums_.valid()) sums_.wait();
}

void GradientExchange::start() {
  running_ = true;
  sums_ = std::async(std::launch::async, [this] { sum_all(); });
}

void GradientExchange::complete(size_t parameter) {
  if (!running_) return;
  const torch::NoGradGuard no_grad;
  auto& gradient = parameters_[parameter].mutable_grad();
  if (!gradient.is_contiguous()) gradient = gradient.contiguous();
  {
    const std::lock_guard lock(mutex_);
    gradients_[parameter] = gradient;
  }
  changed_.notify_all();
}

bool GradientExchange::is_complete(const Bucket& bucket) const {
  return std::all_of(bucket.begin(), bucket.end(),
                     [this](const Piece& piece) { return gradients_[piece.parameter].defined(); });
}

// Waits until `ready`, at most until finish is called. Returns false if the sums are not needed any
// more.
template <typename Ready>
bool GradientExchange::wait_until(const Ready& ready) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finishing_ || abandoned_ || ready(); });
  if (!finishing_) ++early_;
  return !abandoned_;
}

std::vector<torch::Tensor> GradientExchange::tensors_of(const Bucket& bucket) {
  std::vector<torch::Tensor> tensors;
  const std::lock_guard lock(mutex_);
  for (const auto& [parameter, begin, count] : bucket) {
    auto& gradient = gradients_[parameter];
    if (!gradient.defined()) gradient = torch::zeros_like(parameters_[parameter]);
    tensors.push_back(gradient.view(-1).narrow(0, begin, count));
  }
  return tensors;
}

void GradientExchange::sum_all() {
  const torch::NoGradGuard no_grad;
  at::get_num_threads();   // sets the number of this thread when it is first called
  omp_set_num_threads(1);  // the other threads compute
  for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
    if (!wait_until([&] { return is_complete(*bucket); })) return;
    sum_(tensors_of(*bucket));
  }
  if (wait_until([] { return false; })) sum_({used_});
}

void GradientExchange::finish() {
  for (size_t p = 0; p < parameters_.size(); ++p)  // from parts of the batch before the last one
    if (running_ && !gradients_[p].defined() && parameters_[p].grad().defined()) complete(p);
  if (!running_) start();
  used_ = torch::zeros({static_cast<int64_t>(parameters_.size())});
  {
    const std::lock_guard lock(mutex_);
    for (size_t p = 0; p < parameters_.size(); ++p)
      if (gradients_[p].defined()) used_[static_cast<int64_t>(p)] = 1;
    finishing_ = true;
  }
  changed_.notify_all();
  sums_.get();
  const torch::NoGradGuard no_grad;
  const auto* used = used_.data_ptr<float>();
  for (size_t p = 0; p < parameters_.size(); ++p) {
    auto sum = std::exchange(gradients_[p], {});
    parameters_[p].mutable_grad() = used[p] > 0 ? sum : torch::Tensor();
  }
  running_ = finishing_ = false;
}

}  // namespace translution
