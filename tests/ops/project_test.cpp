#include "translution/ops/project.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <csignal>

#include "tests/support/cases.h"
#include "tests/support/expect.h"
#include "tests/support/layouts.h"
#include "tests/support/portable_only.h"
#include "tests/support/thread_count.h"
#include "translution/core/error.h"
#include "translution/ops/products.h"

namespace translution::testing {

using namespace detail;

namespace {

using Tensors = std::vector<at::Tensor>;

struct Shape {
  int64_t rows, in;
  std::vector<int64_t> out;
  bool transposed = false, biased = false;

  std::string str() const {
    return join("rows ", rows, " in ", in, " out ", times(out), transposed ? " transposed" : "",
                biased ? " biased" : "");
  }
};

// One row, a partial block, several blocks; widths below, at and above every vector width.
std::vector<Shape> shapes() {
  const Shape sizes[] = {
      {1, 7, {24}},         {1, 600, {200, 1, 7}}, {129, 1, {7}},           {129, 24, {200, 24}},
      {129, 200, {7, 1}},   {1100, 7, {1, 24}},    {1100, 24, {24, 24, 7}}, {1100, 24, {600}},
      {1100, 600, {24, 7}}, {3, 7, {2049, 24}}};
  std::vector<Shape> all;
  for (Shape shape : sizes)
    for (const bool transposed : {false, true})
      for (const bool biased : {false, true}) {
        shape.transposed = transposed, shape.biased = biased;
        all.push_back(shape);
      }
  return all;
}

// Random inputs and a gradient for each output.
struct Projection {
  Shape shape;
  at::Tensor x;
  Tensors weights, biases, d;

  explicit Projection(const Shape& shape) : shape(shape) {
    auto random = generator(shape.str());
    x = normal({shape.rows, shape.in}, random);
    for (const int64_t out : shape.out) {
      const auto weight = normal({shape.in, out}, random);
      weights.push_back(shape.transposed ? weight.t().contiguous() : weight);
      if (shape.biased) biases.push_back(normal({out}, random));
      d.push_back(normal({shape.rows, out}, random));
    }
  }

  Tensors leaves() const {
    Tensors all = {x};
    all.insert(all.end(), weights.begin(), weights.end());
    all.insert(all.end(), biases.begin(), biases.end());
    return all;
  }

  template <typename Change>
  Projection with(const Change& change) const {
    Projection changed = *this;
    changed.x = change(x);
    for (auto* tensors : {&changed.weights, &changed.biases, &changed.d})
      for (auto& tensor : *tensors) tensor = change(tensor);
    return changed;
  }

  Projection as(at::ScalarType type) const {
    return with([type](const at::Tensor& t) { return t.to(type); });
  }

  Projection with_grad() const {
    Projection changed = with([](const at::Tensor& t) { return t.detach(); });
    for (auto leaf : changed.leaves()) leaf.requires_grad_(true);
    return changed;
  }

  Tensors ours() const { return project(x, weights, biases, shape.transposed); }

  Tensors plain() const {
    Tensors out;
    for (size_t w = 0; w < weights.size(); ++w) {
      out.push_back(at::matmul(x, shape.transposed ? weights[w].t() : weights[w]));
      if (shape.biased) out[w] = out[w] + biases[w];
    }
    return out;
  }

  Tensors gradients(const Tensors& out) const { return torch::autograd::grad(out, leaves(), d); }
};

at::Tensor oracle_product(const Projection& p, size_t w) {  // [rows,out], element by element
  const int64_t in = p.shape.in, out = p.shape.out[w];
  const double* const x = p.x.data_ptr<double>();
  const double* const weight = p.weights[w].data_ptr<double>();
  auto product = at::empty({p.shape.rows, out}, p.x.options());
  for (int64_t row = 0; row < p.shape.rows; ++row)
    for (int64_t o = 0; o < out; ++o) {
      double sum = p.shape.biased ? p.biases[w].data_ptr<double>()[o] : 0;
      for (int64_t i = 0; i < in; ++i)
        sum += x[row * in + i] * weight[p.shape.transposed ? o * in + i : i * out + o];
      product.data_ptr<double>()[row * out + o] = sum;
    }
  return product;
}

void expect_equal(const Tensors& got, const Tensors& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t n = 0; n < got.size(); ++n) EXPECT_LE(error(got[n], expected[n]), tolerance) << n;
}

TEST(Project, AgreesWithALoopOverDoubles) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.str());
    const Projection p(shape);
    const auto out = p.ours();
    ASSERT_EQ(out.size(), shape.out.size());
    for (size_t w = 0; w < out.size(); ++w) {
      const auto expected = oracle_product(p, w);
      EXPECT_LE(error(out[w], expected), kRounding) << w;
      EXPECT_LE(error(p.as(at::kFloat).ours()[w], expected), 1e-5) << w;
    }
  }
}

TEST(Project, GradientsAreThoseOfPlainProducts) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.str());
    const auto p = Projection(shape).with_grad();
    expect_equal(p.gradients(p.ours()), p.gradients(p.plain()), kRounding);
  }
}

// Root mean square of the difference, relative to the largest expected number.
double deviation(const at::Tensor& got, const at::Tensor& expected) {
  const auto off = got.to(at::kDouble) - expected;
  return std::sqrt(off.square().mean().item<double>()) / expected.abs().max().item<double>();
}

// Compared with double, over all shapes together: for a result of a few numbers, it is random which
// of two orders of summation rounds better, and the libraries choose theirs by processor.
TEST(Project, HasAtMostTwiceTheRoundingErrorOfPlainProducts) {
  const char* const kinds[] = {"product", "gradient of x", "gradient of weight or bias"};
  double ours_sum[3] = {}, plain_sum[3] = {};
  for (const Shape& shape : shapes()) {
    const auto exact = Projection(shape).as(at::kFloat).as(at::kDouble).with_grad();
    const auto p = exact.as(at::kFloat).with_grad();
    const auto results = [](const Projection& of, Tensors out) {
      const auto gradients = of.gradients(out);
      out.insert(out.end(), gradients.begin(), gradients.end());
      return out;
    };
    const auto expected = results(exact, exact.plain());
    const auto ours = results(p, p.ours()), plain = results(p, p.plain());
    for (size_t n = 0; n < expected.size(); ++n) {
      const int kind = n < shape.out.size() ? 0 : n == shape.out.size() ? 1 : 2;
      ours_sum[kind] += deviation(ours[n], expected[n]);
      plain_sum[kind] += deviation(plain[n], expected[n]);
      EXPECT_LE(error(ours[n], expected[n]), 2e-6) << shape.str() << ", result " << n;
    }
  }
  for (int kind = 0; kind < 3; ++kind)
    EXPECT_LE(ours_sum[kind], 2 * plain_sum[kind]) << kinds[kind];
}

TEST(Project, PreservesTheLeadingDimensions) {
  auto random = generator("leading");
  const auto weight = normal({6, 5}, random), bias = normal({5}, random);
  for (const std::vector<int64_t>& lead :
       {std::vector<int64_t>{}, {3}, {2, 3}, {2, 1, 4, 3}, {0}, {2, 0, 3}}) {
    SCOPED_TRACE(times(lead));
    auto sizes = lead;
    sizes.push_back(6);
    const auto x = normal(sizes, random).requires_grad_(true);
    const auto out = project(x, {weight}, {bias})[0];
    sizes.back() = 5;
    EXPECT_EQ(out.sizes(), at::IntArrayRef(sizes));
    const auto dx = torch::autograd::grad({out.sum()}, {x})[0];
    EXPECT_EQ(dx.sizes(), x.sizes());
    if (x.numel() == 0) continue;
    EXPECT_LE(error(out, at::matmul(x, weight) + bias), kRounding);
    EXPECT_LE(error(dx, weight.sum(1).expand_as(x)), kRounding);
  }
}

TEST(Project, NoRowsGiveGradientsOfZero) {
  for (const bool transposed : {false, true}) {
    const auto p = Projection({0, 7, {3, 5}, transposed, true}).with_grad();
    const auto gradients = p.gradients(p.ours());
    ASSERT_EQ(gradients.size(), 5u);
    for (size_t n = 1; n < gradients.size(); ++n)
      EXPECT_TRUE(at::equal(gradients[n], at::zeros_like(p.leaves()[n]))) << n;
  }
}

TEST(Project, AcceptsAnyStridesAndAlignment) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (const Shape& shape : shapes())
      for (const auto layout : {columns_first, every_second, misaligned}) {
        if (shape.rows * shape.in > 30'000) continue;
        SCOPED_TRACE(shape.str());
        const auto p = Projection(shape).as(type).with_grad(), strided = p.with(layout).with_grad();
        // Our kernels copy strided inputs, so the bits are the same.
        const double tolerance = !runs_portable() ? 0 : type == at::kFloat ? 1e-5 : kRounding;
        expect_equal(strided.ours(), p.ours(), tolerance);
        expect_equal(strided.gradients(strided.ours()), p.gradients(p.ours()), tolerance);
      }
}

TEST(Project, AcceptsAnExpandedWeight) {
  auto random = generator("expanded");
  const auto x = normal({5, 4}, random), weight = normal({1, 3}, random).expand({4, 3});
  EXPECT_LE(error(project(x, {weight})[0], at::matmul(x, weight)), kRounding);
}

TEST(Project, SkipsOutputsWithoutGradient) {
  for (const bool transposed : {false, true}) {
    const auto p = Projection({129, 24, {7, 24, 5}, transposed, true}).with_grad();
    for (size_t used = 0; used < 3; ++used) {
      SCOPED_TRACE(used);
      const auto grads = [&](const at::Tensor& out) {
        return torch::autograd::grad({out}, p.leaves(), {p.d[used]}, c10::nullopt, false, true);
      };
      const auto got = grads(p.ours()[used]), expected = grads(p.plain()[used]);
      for (size_t n = 0; n < got.size(); ++n) {
        ASSERT_EQ(got[n].defined(), expected[n].defined()) << n;
        if (!got[n].defined()) continue;
        EXPECT_LE(error(got[n], expected[n]), kRounding) << n;
      }
    }
  }
}

TEST(Project, GivesTheSameGradientAloneAndWithOthers) {
  const Projection p({129, 24, {7, 24}, /*transposed=*/true, /*biased=*/true});
  const auto all_leaves = p.with_grad();
  const auto all = all_leaves.gradients(all_leaves.ours());
  for (size_t n = 0; n < all.size(); ++n) {
    auto alone = p.with([](const at::Tensor& t) { return t.detach(); });
    const auto leaf = alone.leaves()[n];
    leaf.requires_grad_(true);
    Tensors out, d;
    const auto products = alone.ours();
    for (size_t w = 0; w < products.size(); ++w)
      if (products[w].requires_grad()) out.push_back(products[w]), d.push_back(alone.d[w]);
    EXPECT_EQ(error(torch::autograd::grad(out, {leaf}, d)[0], all[n]), 0) << n;
    leaf.requires_grad_(false);
  }
  EXPECT_FALSE(p.ours()[0].requires_grad());
}

TEST(Project, AnyNumberOfThreadsGivesTheSameBits) {
  if (runs_portable()) GTEST_SKIP() << "LibTorch's own matrix products do not guarantee this";
  ThreadCount threads_now(1);
  for (const auto type : {at::kFloat, at::kDouble})
    for (const Shape& shape : shapes()) {
      SCOPED_TRACE(shape.str());
      const auto p = Projection(shape).as(type).with_grad();
      Tensors first;
      for (const int threads : {1, 2, 3}) {
        threads_now.set(threads);
        auto results = p.ours();
        for (const auto& gradient : p.gradients(results)) results.push_back(gradient);
        if (first.empty()) first = results;
        for (size_t n = 0; n < first.size(); ++n)
          EXPECT_TRUE(at::equal(results[n], first[n])) << threads << " threads, result " << n;
      }
    }
}

TEST(Project, AcceptsEveryFloatingType) {
  const Projection p({5, 7, {3, 2}, false, true});
  for (const auto type : {at::kBFloat16, at::kFloat, at::kDouble}) {
    const auto out = p.as(type).ours();
    EXPECT_EQ(out[1].scalar_type(), type);
    EXPECT_LE(error(out[1], oracle_product(p, 1)), 0.02);
  }
}

TEST(Project, MetaGivesShapesOfOutputsAndGradients) {
  for (const bool transposed : {false, true}) {
    const auto p = Projection({6, 7, {3, 5}, transposed, true});
    const auto meta = p.with([](const at::Tensor& t) { return t.to(at::kMeta); }).with_grad();
    const auto out = meta.ours();
    for (size_t w = 0; w < out.size(); ++w) {
      EXPECT_TRUE(out[w].is_meta());
      EXPECT_EQ(out[w].sizes(), p.d[w].sizes());
    }
    const auto gradients = meta.gradients(out);
    for (size_t n = 0; n < gradients.size(); ++n)
      EXPECT_EQ(gradients[n].sizes(), meta.leaves()[n].sizes()) << n;
  }
}

TEST(Project, MatchesThePortablePath) {
  const auto p = Projection({129, 24, {7, 24}, true, true}).with_grad();
  const auto out = p.ours(), gradients = p.gradients(out);
  const PortableOnly portable;
  expect_equal(p.ours(), out, kRounding);
  expect_equal(p.gradients(p.ours()), gradients, kRounding);
}

// A signal handler that ran during a oneDNN product corrupted stack or heap and crashed the
// program, at about every thousandth signal.
TEST(Project, IsNotDisturbedBySignals) {
  static volatile std::sig_atomic_t signals = 0;
  const auto before = std::signal(SIGALRM, [](int) { signals = signals + 1; });
  const auto p = Projection({1280, 192, {768}}).as(at::kFloat).with_grad();
  const auto expected = p.gradients(p.ours());
  const itimerval often{{0, 300}, {0, 300}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) {
    const auto got = p.gradients(p.ours());
    for (size_t n = 0; n < expected.size(); ++n) ASSERT_TRUE(at::equal(got[n], expected[n])) << n;
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  std::signal(SIGALRM, before);
  EXPECT_GT(signals, 10);
}

}  // namespace
}  // namespace translution::testing
