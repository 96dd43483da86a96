// Layers give the same bits on every call, on any number of threads, and whether encodings are
// saved for backward or recomputed. So does a text that grows token by token. The kernels agree
// with the portable implementation.
//
// To compare two versions of the code bit by bit, run both with TRANSLUTION_DIGEST_FILE=path, once
// for each TRANSLUTION_ISA, and diff the files: they have a line "case<TAB>quantity<TAB>digest" for
// every output, attention map and gradient. Digests are comparable on one machine with one set of
// libraries.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>
#include <xxhash.h>

#include <cinttypes>
#include <cstdlib>
#include <fstream>
#include <map>

#include "tests/nn/digest_cases.h"
#include "tests/nn/positions.h"
#include "tests/support/filled.h"
#include "tests/support/portable_only.h"
#include "tests/support/thread_count.h"
#include "translution/models/generate.h"
#include "translution/ops/runtime.h"

namespace translution::testing {
namespace {

constexpr uint64_t kDropoutSeed = 7;
constexpr int64_t kSaveAll = int64_t{1} << 40, kSaveNothing = 0;  // workspaces

using ::testing::IsEmpty;
using Results = std::map<std::string, at::Tensor>;
using Digests = std::map<std::string, std::string>;

// A layer with the weights and the input of a case.
class Subject {
 public:
  explicit Subject(const LayerCase& c, int64_t workspace = kSaveAll)
      : layer_(AttentionOptions(c.options).init(Init::none).workspace(workspace)), x_(input_of(c)) {
    layer_->to(c.type);
    fill_parameters(*layer_);
    x_.requires_grad_(c.gradients != Gradients::of_weights);
    for (auto& parameter : layer_->parameters())
      parameter.requires_grad_(c.gradients != Gradients::of_input);
    if (!c.rows.empty()) rows_ = torch::tensor(c.rows, torch::kLong);
  }

  // Output, map, and the gradient of x and of every parameter.
  Results run() {
    layer_->zero_grad();
    x_.mutable_grad() = at::Tensor();
    torch::manual_seed(kDropoutSeed);
    const auto out = layer_->forward(x_, rows_);
    out.backward(filled("gradient of the output", out.sizes(), 1).to(out.scalar_type()));
    Results results{{"out", out.detach()}};
    add_map(results);
    if (x_.requires_grad()) results["d x"] = x_.grad();
    for (const auto& item : layer_->named_parameters())
      if (item.value().requires_grad()) results["d " + item.key()] = item.value().grad().clone();
    return results;
  }

 private:
  static at::Tensor input_of(const LayerCase& c) {
    const int64_t dim = c.options.dim();
    const auto x = filled("x", {c.batch, c.tokens, dim}, 1.7).to(c.type);
    return c.strided ? x.permute({2, 0, 1}).contiguous().permute({1, 2, 0}) : x;
  }

  void add_map(Results& results) {
    const torch::NoGradGuard no_grad;
    torch::manual_seed(kDropoutSeed);
    std::tie(results["out beside the map"], results["map"]) = layer_->forward_with_map(x_, rows_);
  }

  Attention layer_;
  at::Tensor x_, rows_;
};

std::string digest_of(const at::Tensor& tensor) {
  const auto x = tensor.contiguous();
  const XXH128_hash_t hash = XXH3_128bits(x.data_ptr(), x.nbytes());
  char text[33];
  std::snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
  return text;
}

Digests digests_of(const Results& results) {
  Digests digests;
  for (const auto& [quantity, tensor] : results) digests[quantity] = digest_of(tensor);
  return digests;
}

// The quantities whose digests differ from the expected ones.
std::vector<std::string> differing(const Digests& digests, const Digests& expected) {
  std::vector<std::string> quantities;
  for (const auto& [quantity, digest] : expected)
    if (digests.at(quantity) != digest) quantities.push_back(quantity);
  return quantities;
}

// True if the portable implementation is used everywhere.
bool runs_portable() { return !runtime().fused(); }

// The results of the portable implementation.
Results portable_results(Subject& subject) {
  const PortableOnly portable;
  return subject.run();
}

// In the order of `cases`. The caller's outer loop is over thread counts, because a change of the
// number of threads is slow.
std::vector<Digests> digests_of(const std::vector<LayerCase>& cases, int threads) {
  const ThreadCount count(threads);
  std::vector<Digests> digests;
  for (const auto& c : cases) digests.push_back(digests_of(Subject(c).run()));
  return digests;
}

void expect_same_on_any_number_of_threads(const std::vector<LayerCase>& cases) {
  const auto expected = digests_of(cases, 1);
  for (const int threads : {1, 2, 3, 8}) {
    const auto digests = digests_of(cases, threads);
    for (size_t n = 0; n < cases.size(); ++n)
      EXPECT_THAT(differing(digests[n], expected[n]), IsEmpty())
          << cases[n].name << ", " << threads << " threads";
  }
}

TEST(LayerBits, AreTheSameOnEveryCallAndAnyNumberOfThreads) {
  if (runs_portable()) GTEST_SKIP() << "not guaranteed by LibTorch's matrix products";
  expect_same_on_any_number_of_threads(every_case());
}

TEST(LayerBits, InBf16AreTheSameOnEveryCallAndAnyNumberOfThreads) {
  if (!runtime().fused()) GTEST_SKIP() << "not guaranteed by LibTorch's matrix products";
  expect_same_on_any_number_of_threads(every_bf16_case());
}

// The digests of the results, and the FLOPs of their products.
std::pair<Digests, int64_t> run_with_workspace(const LayerCase& c, int64_t workspace) {
  Subject subject(c, workspace);
  const int64_t before = runtime().product_flops();
  auto digests = digests_of(subject.run());
  return {std::move(digests), runtime().product_flops() - before};
}

TEST(LayerBits, AreTheSameWhetherEncodingsAreSavedOrRecomputed) {
  if (runs_portable()) GTEST_SKIP() << "the portable implementation saves no encodings";
  for (const auto& c : every_case()) {
    if (!c.can_save_encodings()) continue;
    SCOPED_TRACE(c.name);
    const auto [saved, fewer_flops] = run_with_workspace(c, kSaveAll);
    const auto [recomputed, more_flops] = run_with_workspace(c, kSaveNothing);
    EXPECT_THAT(differing(saved, recomputed), IsEmpty());
    EXPECT_LT(fewer_flops, more_flops);
  }
}

// Encodings are rounded whether they are saved or recomputed.
TEST(LayerBits, InBf16AreTheSameWithAnyWorkspace) {
  for (const auto& c : every_bf16_case()) {
    if (!c.can_save_encodings()) continue;
    SCOPED_TRACE(c.name);
    const auto saved = digests_of(Subject(c, kSaveAll).run());
    for (const int64_t workspace : {kSaveNothing, runtime().workspace()})
      EXPECT_THAT(differing(digests_of(Subject(c, workspace).run()), saved), IsEmpty())
          << workspace;
  }
}

// The largest difference, relative to the largest number. A gradient may be zero up to rounding,
// such as that of a bias on keys, which cancels in the softmax.
double error(const at::Tensor& a, const at::Tensor& b) {
  constexpr double kMinScale = 0.1;
  return (a - b).abs().max().item<double>() / std::max(b.abs().max().item<double>(), kMinScale);
}

// Largest measured errors over all instruction sets: 1.2e-14 in double and 7e-6 in float, both for
// the gradient of a bias on keys.
TEST(LayerNumbers, OfFusedKernelsAgreeWithThePortableImplementationToRounding) {
  for (const auto& c : every_case()) {
    SCOPED_TRACE(c.name);
    Subject subject(c);
    const auto results = subject.run();
    for (const auto& [quantity, expected] : portable_results(subject))
      EXPECT_LE(error(results.at(quantity), expected), c.type == at::kFloat ? 2e-5 : 1e-13)
          << quantity;
  }
}

// A sum in another order may round an operand of the next product differently, by 1/256 of it.
TEST(LayerNumbers, OfFusedKernelsInBf16AgreeWithThePortableImplementationToRounding) {
  for (const auto& c : every_bf16_case()) {
    SCOPED_TRACE(c.name);
    Subject subject(c);
    const auto results = subject.run();
    for (const auto& [quantity, expected] : portable_results(subject))
      // The gradient of a key's bias is 0 up to rounding, which differs.
      EXPECT_LE(error(results.at(quantity), expected), quantity == "d key_bias" ? 0.2 : 0.02)
          << quantity;
  }
}

// The logits after every token of a text that is longer than the model's context.
at::Tensor logits_of_growing_text(const Position& position, at::ScalarType type,
                                  Precision precision = Precision::float32) {
  ModelOptions options;
  options.family = Family::gpt;
  options.architecture = {"small", 2, 21, 3, 25, 10};
  options.length = 11;
  options.vocabulary = 13;
  options.position = position;
  options.precision = precision;
  GPT model(options);
  model->to(type);
  fill_parameters(*model);
  Generator generator(model);
  std::vector<at::Tensor> logits;
  for (int64_t index = 0; index < 2 * options.length; ++index) {
    generator.feed({(5 * index + 3) % options.vocabulary});
    logits.push_back(generator.logits());
  }
  return at::stack(logits);
}

// By method and type.
Digests digests_of_growing_text(int threads) {
  const ThreadCount count(threads);
  Digests digests;
  for (const auto& [name, position] : every_method()) {
    digests[name + " float"] = digest_of(logits_of_growing_text(position, at::kFloat));
    digests[name + " double"] = digest_of(logits_of_growing_text(position, at::kDouble));
    if (runtime().fused())
      digests[name + " bf16"] =
          digest_of(logits_of_growing_text(position, at::kFloat, Precision::bf16));
  }
  return digests;
}

TEST(GrowingTextBits, AreTheSameOnEveryCallAndAnyNumberOfThreads) {
  if (runs_portable()) GTEST_SKIP() << "not guaranteed by LibTorch's matrix products";
  const auto expected = digests_of_growing_text(1);
  for (const int threads : {1, 2, 3, 8})
    EXPECT_THAT(differing(digests_of_growing_text(threads), expected), IsEmpty())
        << threads << " threads";
}

TEST(AllBits, AreWrittenForComparisonWithAnotherVersion) {
  const char* path = std::getenv("TRANSLUTION_DIGEST_FILE");
  if (path == nullptr) GTEST_SKIP() << "TRANSLUTION_DIGEST_FILE is not set";
  const ThreadCount one(1);
  std::ofstream file(path);
  auto cases = every_case();
  for (const auto& c : every_bf16_case()) cases.push_back(c);
  for (const auto& c : cases)
    for (const auto& [quantity, digest] : digests_of(Subject(c).run()))
      file << c.name << '\t' << quantity << '\t' << digest << '\n';
  for (const auto& [name, digest] : digests_of_growing_text(1))
    file << "growing text " << name << "\tlogits\t" << digest << '\n';
  EXPECT_TRUE(file.flush()) << "cannot write " << path;
}

}  // namespace
}  // namespace translution::testing
