#include "translution/models/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "translution/core/error.h"
#include "translution/core/random.h"
#include "translution/nn/linear.h"
#include "translution/nn/norm.h"

namespace translution {

using namespace detail;

namespace {

struct Candidate {
  int64_t token;
  double weight;  // unnormalised probability
};

// Ties are broken in favour of the smaller token, as in argmax.
bool less_likely(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight < b.weight : a.token > b.token;
}

double total(const std::vector<Candidate>& candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& c) { return sum + c.weight; });
}

std::vector<Candidate> make_candidates(const torch::Tensor& logits, double highest,
                                       double temperature) {
  const auto* logit = logits.data_ptr<double>();
  std::vector<Candidate> candidates(logits.numel());
  for (int64_t token = 0; token < logits.numel(); ++token)
    candidates[token] = {token, std::exp((logit[token] - highest) / temperature)};
  return candidates;
}

void limit_top_k(std::vector<Candidate>& candidates, int64_t count) {
  if (count >= static_cast<int64_t>(candidates.size())) return;
  const auto more_likely = [](const auto& a, const auto& b) { return less_likely(b, a); };
  std::nth_element(candidates.begin(), candidates.begin() + count, candidates.end(), more_likely);
  candidates.resize(count);
}

// A heap, not a sort: usually few of many tokens are taken.
void limit_top_p(std::vector<Candidate>& candidates, double top_p) {
  const double target = top_p * total(candidates);
  double reached = 0;
  auto rest = candidates.end();
  std::make_heap(candidates.begin(), rest, less_likely);
  do {
    std::pop_heap(candidates.begin(), rest--, less_likely);
    reached += rest->weight;
  } while (reached < target && rest != candidates.begin());
  candidates.erase(candidates.begin(), rest);
}

int64_t draw(std::vector<Candidate> candidates, Random random) {
  // In order of tokens, so that the order does not depend on the rounding of near-equal weights.
  std::sort(candidates.begin(), candidates.end(),
            [](const auto& a, const auto& b) { return a.token < b.token; });
  double remaining = random.uniform() * total(candidates);
  int64_t token = 0;
  for (const auto& candidate : candidates) {
    if (candidate.weight == 0) continue;
    token = candidate.token;
    remaining -= candidate.weight;
    if (remaining < 0) break;
  }
  return token;
}

// Puts the model into evaluation mode while it lives. Does not write to a model that is in
// evaluation mode already: other threads may be reading it.
class EvalMode {
 public:
  explicit EvalMode(GPT model) : model_(std::move(model)), was_training_(model_->is_training()) {
    if (was_training_) model_->eval();
  }
  ~EvalMode() {
    if (was_training_) model_->train();
  }
  EvalMode(const EvalMode&) = delete;

 private:
  GPT model_;
  bool was_training_;
};

}  // namespace

void SamplingOptions::check() const {
  require(temperature >= 0 && std::isfinite(temperature),
          "sampling: expected a temperature of 0 or more, got ", temperature);
  require(top_k >= 0, "sampling: expected top_k of 0 (all tokens) or more, got ", top_k);
  require(top_p > 0 && top_p <= 1, "sampling: expected top_p above 0 and up to 1, got ", top_p);
}

int64_t sample_token(const torch::Tensor& logits, const SamplingOptions& options,
                     uint64_t position) {
  options.check();
  TORCH_CHECK(logits.defined() && logits.dim() == 1 && logits.numel() > 0,
              "sampling: expected logits [vocabulary], got ",
              logits.defined() ? join(logits.sizes()) : "none");
  const auto values = logits.detach().to(torch::kCPU, torch::kDouble).contiguous();
  const double highest = values.max().item<double>();  // NaN if any logit is NaN
  ensure(std::isfinite(highest), "sampling: the highest logit is ", highest,
         "; the weights are damaged, or their training diverged");
  if (options.temperature == 0) return values.argmax().item<int64_t>();
  auto candidates = make_candidates(values, highest, options.temperature);
  if (options.top_k > 0) limit_top_k(candidates, options.top_k);
  if (options.top_p < 1) limit_top_p(candidates, options.top_p);
  return draw(std::move(candidates), Random({options.seed, position}));
}

Generator::Generator(GPT model, SamplingOptions sampling, bool cache)
    : model_(std::move(model)), sampling_(sampling) {
  require(!model_.is_empty(), "generator: the model is missing");
  sampling_.check();
  if (!cache) return;
  const auto& options = model_->options;
  const auto like_weights = model_->token_embedding->weight.options().requires_grad(false);
  for (size_t layer = 0; layer < model_->backbone->blocks->size(); ++layer) {
    features_.push_back(torch::empty({1, options.length, options.architecture.dim}, like_weights));
    lookaheads_.push_back(model_->backbone->blocks->at<BlockImpl>(layer).attention->lookahead());
  }
}

void Generator::feed(const std::vector<int64_t>& tokens) {
  require(!tokens.empty(), "generator: expected one or more tokens, got none");
  const int64_t vocabulary = model_->options.vocabulary;
  for (const int64_t token : tokens)
    require(token >= 0 && token < vocabulary, "generator: expected tokens from 0 to ",
            vocabulary - 1, ", got ", token);
  for (const int64_t token : tokens) append(token);
}

void Generator::append(int64_t token) {
  const auto length = static_cast<size_t>(model_->options.length);
  if (context_.size() == length) {
    context_.erase(context_.begin(), context_.begin() + (length + 1) / 2);
    cached_ = 0;
  }
  context_.push_back(token);
  ++position_;
  logits_.reset();
}

int64_t Generator::next() {
  const int64_t token = sample_token(logits(), sampling_, position_);
  append(token);
  return token;
}

torch::Tensor Generator::logits() {
  require(!context_.empty(),
          "generator: the text is empty; feed a prompt of one or more tokens first");
  if (logits_.defined()) return logits_;
  const torch::NoGradGuard no_grad;
  const EvalMode eval(model_);
  const int64_t count = static_cast<int64_t>(context_.size());
  const auto device = model_->token_embedding->weight.device();
  const auto tokens = torch::tensor(context_, torch::kLong).unsqueeze(0).to(device);  // [1,n]
  const auto out = features_.empty()
                       ? model_->forward(tokens, torch::tensor({count - 1}, torch::kLong))
                       : run_blocks(model_->embed(tokens));  // [1,1,vocabulary]
  return logits_ = out.flatten();
}

// Computes the rows of the tokens that are not cached yet. The last block computes only the last
// row.
torch::Tensor Generator::run_blocks(torch::Tensor x) {
  const int64_t count = x.size(1), first = cached_;
  x = x.narrow(1, first, count - first);
  for (size_t layer = 0; layer < features_.size(); ++layer) {
    features_[layer].narrow(1, first, count - first).copy_(x);
    x = run_block(layer, first, count);
  }
  cached_ = count;
  return model_->logits(normalise(model_->backbone->norm, x));
}

torch::Tensor Generator::run_block(size_t layer, int64_t first, int64_t count) {
  auto& block = model_->backbone->blocks->at<BlockImpl>(layer);
  auto& lookahead = lookaheads_[layer];
  const auto x = features_[layer].narrow(1, 0, count);
  if (lookahead && count - first == 1) return block.forward_last(x, *lookahead);
  if (lookahead) lookahead->restart();
  const bool last = layer + 1 == features_.size();
  if (last) return block.forward(x, torch::tensor({count - 1}, torch::kLong));
  return block.forward(x, first > 0 ? torch::arange(first, count, torch::kLong) : torch::Tensor());
}

}  // namespace translution
