// Compares our layer with Translution as a careful PyTorch user would write it: forward and
// backward with the same shapes and weights in one process, so the speed-up is the ratio of two
// lines. Items are samples; peak_mib is the memory of one pass with its gradients, without weights.

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>

#include "apps/translution/measure.h"
#include "benchmarks/paper_layer.h"
#include "translution/core/cpu_info.h"

namespace translution {
namespace {

// Slots of all pairs, row-major: [N*N].
torch::Tensor slots_of(const OffsetTable& table,
                       int64_t (OffsetTable::*slot)(int64_t, int64_t) const) {
  auto slots = torch::empty({kTokens * kTokens}, torch::kLong);
  for (int64_t pair = 0; pair < kTokens * kTokens; ++pair)
    slots.data_ptr<int64_t>()[pair] = (table.*slot)(pair / kTokens, pair % kTokens);
  return slots;
}

// Gathers a matrix for every pair, then computes one batched product per role and query token.
class Baseline {
 public:
  explicit Baseline(const Attention& layer)
      : layer_(layer),
        slots_(slots_of(*layer->offsets(), &OffsetTable::slot)),
        key_slots_(slots_of(*layer->offsets(), &OffsetTable::key_slot)) {}

  torch::Tensor forward(const torch::Tensor& x) {
    const auto tokens = x.transpose(0, 1);  // [N,B,C]
    const auto queries = tokens.unbind();
    const auto wq = gather("query", slots_), wk = gather("key", key_slots_),
               wv = gather("value", slots_);
    std::vector<torch::Tensor> rows;
    for (int64_t i = 0; i < kTokens; ++i)
      rows.push_back(
          attend(queries[i].expand_as(tokens).bmm(wq[i]), tokens.bmm(wk[i]), tokens.bmm(wv[i])));
    return layer_->out(torch::stack(rows, 1));  // [B,N,C]
  }

 private:
  // One [N,C,C'] per query token. Uses unbind, whose gradient is one stack; indexing would add a
  // complete [N,N,C,C'] of mostly zeros for each token.
  std::vector<torch::Tensor> gather(const char* role, const torch::Tensor& slots) {
    return layer_->named_parameters()[role]
        .index_select(0, slots)
        .view({kTokens, kTokens, kDim, kHeads * kDimHead})
        .unbind();
  }

  static torch::Tensor heads(const torch::Tensor& rows) {  // [N,B,C'] -> [N,B,H,D]
    return rows.view({kTokens, -1, kHeads, kDimHead});
  }

  static torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v) {
    const auto scores = (heads(q) * heads(k)).sum(-1, true) / std::sqrt(double{kDimHead});
    return (scores.softmax(0) * heads(v)).sum(0).flatten(1);  // [B,C']
  }

  Attention layer_;
  torch::Tensor slots_, key_slots_;
};

// The usual self-attention in plain LibTorch calls, with one product for q, k and v.
class PlainAttention {
 public:
  explicit PlainAttention(const Attention& layer) : layer_(layer) {}

  torch::Tensor forward(const torch::Tensor& x) {  // [B,N,C]
    const auto weights = layer_->named_parameters();
    const auto qkv = torch::cat({weights["query"], weights["key"], weights["value"]}, 1);
    const auto parts = x.matmul(qkv).view({x.size(0), kTokens, 3, kHeads, kDimHead});
    const auto qkv_heads = parts.permute({2, 0, 3, 1, 4}).unbind(0);  // [B,H,N,D] each
    const auto scores =
        qkv_heads[0].matmul(qkv_heads[1].transpose(-2, -1)) / std::sqrt(double{kDimHead});
    const auto out = scores.softmax(-1).matmul(qkv_heads[2]);  // [B,H,N,D]
    return torch::nn::functional::linear(out.transpose(1, 2).flatten(2), layer_->out->weight,
                                         layer_->out->bias);
  }

 private:
  Attention layer_;
};

struct Ours {
  explicit Ours(const Attention& layer) : layer(layer) {}
  torch::Tensor forward(const torch::Tensor& x) { return layer->forward(x); }
  Attention layer;
};

void drop_gradients(Attention& layer, torch::Tensor& x) {
  for (auto& parameter : layer->parameters()) parameter.mutable_grad() = torch::Tensor();
  x.mutable_grad() = torch::Tensor();
}

// The output and every gradient.
template <typename Model>
std::vector<torch::Tensor> results(Attention& layer, torch::Tensor& x, const torch::Tensor& d_out) {
  drop_gradients(layer, x);
  const auto out = Model(layer).forward(x);
  out.backward(d_out);
  std::vector<torch::Tensor> tensors = {out.detach(), x.grad()};
  for (const auto& parameter : layer->parameters()) tensors.push_back(parameter.grad());
  return tensors;
}

template <typename Model>
bool same_results(Attention& layer) {
  auto x = random_tokens(2).requires_grad_();
  const auto d_out = random_tokens(2);
  const std::vector<torch::Tensor> ours = results<Ours>(layer, x, d_out),
                                   theirs = results<Model>(layer, x, d_out);
  for (size_t i = 0; i < ours.size(); ++i) {
    const double largest = theirs[i].abs().max().item<double>();
    if (!ours[i].allclose(theirs[i], /*rtol=*/0, /*atol=*/1e-4 * largest)) return false;
  }
  return true;
}

template <typename Model>
void forward_backward(benchmark::State& state, Attention layer) {
  Model model(layer);
  auto x = random_tokens(state.range(0)).requires_grad_();
  const auto d_out = random_tokens(state.range(0));
  const auto pass = [&] {
    drop_gradients(layer, x);
    model.forward(x).backward(d_out);
  };
  pass();  // warm-up
  for (auto _ : state) pass();
  state.SetItemsProcessed(state.iterations() * state.range(0));
  drop_gradients(layer, x);
  if (const auto peak = cli::peak_bytes(pass)) state.counters["peak_mib"] = *peak / (1 << 20);
}

template <typename Model>
void add(const char* name, const Attention& layer, int64_t small, int64_t large) {
  benchmark::RegisterBenchmark(name, forward_backward<Model>, layer)
      ->ArgName("batch")
      ->Arg(small)
      ->Arg(large)
      ->MinTime(3)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

}  // namespace
}  // namespace translution

int main(int argc, char** argv) {
  using namespace translution;
  at::set_num_threads(usable_cores());
  torch::manual_seed(0);
  auto layer = make_layer(Method::translution), plain = make_layer(Method::self_attention);
  if (!same_results<Baseline>(layer) || !same_results<PlainAttention>(plain)) {
    std::fputs("bench_baseline: expected equal results of our layer and the baseline\n", stderr);
    return 1;
  }
  add<Ours>("translution", layer, 4, 32);
  add<Baseline>("baseline", layer, 4, 32);
  add<Ours>("self_attention", plain, 64, 256);
  add<PlainAttention>("plain_libtorch", plain, 64, 256);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
