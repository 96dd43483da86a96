#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "bench.h"
#include "bench_points.h"
#include "model_flags.h"
#include "threads.h"
#include "translution/models/cost.h"
#include "translution/models/memory_check.h"
#include "translution/ops/runtime.h"
#include "translution/train/device.h"

namespace translution::cli {

using namespace detail;

namespace {

// The implementations round in different orders. A larger difference is a mistake in one of them.
// In bf16, where operands are rounded to 8 bits, the order may change the rounding of an encoding.
constexpr double kMaxError = 1e-3, kMaxBf16Error = 2e-2;
constexpr int64_t kMaxWidth = 1 << 20;
// The portable implementation reads a row for each tap of each pair: it compares small clouds.
constexpr int64_t kComparedPoints = 128;

constexpr const char* kBenchOpExamples =
    "Measures the layer with its projections, forward and backward (gradients of the input and of\n"
    "all weights), after a comparison with the portable implementation. Figures:\n"
    "  forward, backward    time of the best repeat, and the median\n"
    "  products             FLOPs of the matrix products done, over the time of the best repeat\n"
    "  SGEMM                rate of the machine: every thread multiplies 1024x1024 floats, "
    "between\n"
    "                       any two repeats. The best counts, as for the layer: both show the "
    "idle\n"
    "                       machine. A median far below the best shows that it was busy\n"
    "  fraction of SGEMM    products over SGEMM\n"
    "  fraction useful      three times the FLOPs of forward, over the same time, as a fraction "
    "of\n"
    "                       the machine's rate in that precision; recomputation counts as lost\n"
    "  peak memory          of one pass, above weights and gradients\n"
    "  weight bandwidth     bytes of weights read in each direction and of gradients written, "
    "over\n"
    "                       the time\n"
    "  largest error        largest difference from the portable implementation, relative to the\n"
    "                       largest value\n"
    "With --points also:\n"
    "  rows of the lattice  time of the products with its matrices alone, forward and backward\n"
    "  of SGEMM             their rate over SGEMM. The rest of the layer visits pairs: row work\n"
    "With --precision bf16 also:\n"
    "  bfloat16 products    rate of the machine: every thread multiplies 448 rows by packed "
    "192x192\n"
    "                       matrices, between any two repeats\n"
    "  fraction of these    products over bfloat16 products\n"
    "  speed-up             over float32, which runs in turns with bf16 and saves all encodings "
    "for\n"
    "                       backward\n"
    "\n"
    "Examples:\n"
    "  translution bench op --method translution --grid 7x7 --cls --dim 192 --heads 3 --batch 64\n"
    "  translution bench op --method alpha_translution --relative-dim 16 --grid 160 --causal\n"
    "  translution bench op --method rotary --threads 1 --repeats 20 --json\n"
    "  translution bench op --points 1024 --axes 3 --radius 2 --neighbours 16 --batch 8";

struct OpFlags {
  explicit OpFlags(Command command)
      : position(command), points(command), bench(command, /*has_batch=*/true) {
    const auto number = [&](const char* name, const std::string& help) {
      return command.option(name, "N", help, "Layer");
    };
    grid =
        command.option("--grid", "NxN", "grid of tokens, as in 160, 7x7 or 4x7x7 (7x7)", "Layer");
    dim = number("--dim", "channels of input and output (192)");
    heads = number("--heads", "attention heads (3)");
    dim_head = number("--dim-head", "channels per head (64)");
    command.flag("--cls", cls, "add a class token in front", "Layer");
    command.flag("--causal", causal, "mask attention to later tokens", "Layer");
  }

  PointCase clouds() const {
    const auto found = points.read(position.read().radius);
    if (found.points > 0 && (grid.given() || causal))
      throw std::invalid_argument(join(grid.given() ? grid.name() : "--causal",
                                       ": belongs to tokens on a grid; leave out --points"));
    return found;
  }

  // Without a grid for points.
  AttentionOptions layer() const {
    const bool on_points = clouds().points > 0;
    const auto sides = grid.given() ? value_of(grid).grid() : std::vector<int64_t>{7, 7};
    return AttentionOptions(number_or(192, dim, kMaxWidth))
        .heads(number_or(3, heads, kMaxWidth))
        .dim_head(number_or(64, dim_head, kMaxWidth))
        .grid(on_points ? std::vector<int64_t>() : sides)
        .cls(cls)
        .causal(causal)
        .position(position.read())
        .precision(bench.precision());
  }

  PositionFlags position;
  PointFlags points;
  BenchFlags bench;
  Option grid, dim, heads, dim_head;
  bool cls = false, causal = false;
};

// A layer with an input and the gradient of its output.
struct Case {
  Case(const AttentionOptions& given, const PointCase& clouds, int64_t batch, torch::Device device_)
      : device(device_) {
    int64_t tokens = clouds.points;
    if (tokens > 0) {
      build(PointAttention(given, clouds.lattice), clouds.positions(batch).to(device));
    } else {
      tokens = count_tokens({given.grid(), given.cls(), given.causal()});
      Attention layer(given);
      layer->to(device);
      options = &layer->options, leaves = layer->parameters();
      forward = [layer](const torch::Tensor& x) mutable { return layer->forward(x); };
    }
    x = torch::randn({batch, tokens, given.dim()}).to(device).requires_grad_();
    d_out = torch::randn({batch, tokens, given.dim()}).to(device);
    leaves.push_back(x);
  }

  void build(PointAttention layer, const torch::Tensor& positions) {
    layer->to(device);
    options = &layer->options, leaves = layer->parameters();
    forward = [layer, positions](const torch::Tensor& x) mutable {
      return layer->forward(x, {positions});
    };
    const bool has_products =
        std::any_of(leaves.begin(), leaves.end(), [](const auto& leaf) { return leaf.dim() == 3; });
    if (has_products) products.emplace(layer, positions);
  }

  void drop_gradients() {
    for (auto& leaf : leaves) leaf.mutable_grad() = torch::Tensor();
  }

  // Takes effect in the next pass.
  void compute_in(Precision precision, int64_t workspace) {
    options->precision(precision).workspace(workspace);
  }

  // The output and all gradients.
  std::vector<torch::Tensor> results() {
    drop_gradients();
    const auto out = forward(x);
    out.backward(d_out);
    std::vector<torch::Tensor> tensors = {out.detach()};
    for (const auto& leaf : leaves) tensors.push_back(leaf.grad());
    return tensors;
  }

  std::function<torch::Tensor(const torch::Tensor&)> forward;
  AttentionOptions* options = nullptr;    // of the layer that `forward` holds
  std::optional<PointProducts> products;  // of a layer between points
  const torch::Device device;
  torch::Tensor x, d_out;  // [B,N,C]
  std::vector<torch::Tensor> leaves;
};

double largest(const torch::Tensor& x) { return x.abs().max().item<double>(); }

// The largest difference, relative to the largest value.
double error(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.defined() != b.defined()) return std::numeric_limits<double>::infinity();
  if (!a.defined()) return 0;
  const double difference = largest(a - b);
  return difference == 0 ? 0 : difference / largest(b);
}

// Returns the largest error of the fused kernels against the portable implementation; throws if it
// is too large.
double compare_implementations(Case& test) {
  const auto ours = test.results();
  const auto implementation = runtime().implementation();
  runtime().set_implementation(Implementation::portable);
  const auto expected = test.results();
  runtime().set_implementation(implementation);
  const bool bf16 = test.options->precision() == Precision::bf16;
  const double most = bf16 ? kMaxBf16Error : kMaxError;
  double worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double e = error(ours[i], expected[i]);
    if (!(e <= most))
      throw std::runtime_error(fmt::format(
          "bench op: the fused kernels differ from the portable implementation by {:.2g} "
          "of the largest value, more than {:.0e}",
          e, most));
    worst = std::max(worst, e);
  }
  return worst;
}

struct Timing {
  std::vector<double> forward, backward, total;  // ms
  std::vector<double> products;                  // ms, of those alone
  std::vector<double> sgemm;
  Float32Turns float32;
  double forward_gemm = 0, backward_gemm = 0;  // FLOPs of our kernels in one pass
  double products_gemm = 0;

  bool ours() const { return forward_gemm > 0; }
  // The share of forward's products that backward recomputes, beside its own two for each.
  double recomputed() const { return ours() ? backward_gemm / forward_gemm - 2 : 0; }
};

// Measures the same passes in float32, and the machine's rate of bfloat16 products.
void take_float32_turn(Case& test, ProductRate& products, Float32Turns& turns) {
  turns.bf16_gemm.push_back(products.gflops());
  const auto options = *test.options;
  test.compute_in(Precision::float32, kUnlimitedWorkspace);
  test.drop_gradients();
  const Stopwatch watch;
  test.forward(test.x).backward(test.d_out);
  wait_for(test.device);
  turns.milliseconds.push_back(watch.milliseconds());
  test.compute_in(options.precision(), options.workspace());
}

Timing time_passes(Case& test, int64_t repeats, int threads) {
  Timing timing;
  ProductRate sgemm(Precision::float32, threads);
  std::optional<ProductRate> products;
  if (test.options->precision() == Precision::bf16) products.emplace(Precision::bf16, threads);
  const auto timed = [&](std::vector<double>& samples, double& flops, const auto& work) {
    const auto before = runtime().product_flops();
    const Stopwatch watch;
    work();
    wait_for(test.device);
    samples.push_back(watch.milliseconds());
    flops = static_cast<double>(runtime().product_flops() - before);
  };
  timing.sgemm = take_turns(repeats, sgemm, [&] {
    test.drop_gradients();
    torch::Tensor out;
    timed(timing.forward, timing.forward_gemm, [&] { out = test.forward(test.x); });
    timed(timing.backward, timing.backward_gemm, [&] { out.backward(test.d_out); });
    timing.total.push_back(timing.forward.back() + timing.backward.back());
    if (test.products)
      timed(timing.products, timing.products_gemm, [&] { test.products->forward_and_backward(); });
    if (products) take_float32_turn(test, *products, timing.float32);
  });
  return timing;
}

// FLOPs that our kernels counted, but at least the useful ones: LibTorch may have done some.
double executed_flops(const Timing& timing, double useful) {
  return std::max(timing.forward_gemm + timing.backward_gemm, useful);
}

// Forward and backward read every weight, and backward writes its gradient in float32. An encoding
// that is recomputed reads its table once more.
double weight_bytes(const Timing& timing, const AttentionOptions& layer) {
  const auto width = static_cast<double>(layer.heads() * layer.dim_head());
  const double written = sizeof(float);
  const double read = layer.precision() == Precision::bf16 ? sizeof(uint16_t) : sizeof(float);
  double bytes = (2 * read + written) * width * static_cast<double>(layer.dim());
  for (const auto& spec : attention_parameters(layer)) {
    const double again = spec.per_slot ? timing.recomputed() : 0;
    bytes += ((2 + again) * read + written) * static_cast<double>(spec.count());
  }
  return bytes;
}

double compare(const AttentionOptions& layer, PointCase clouds, const BenchFlags& flags) {
  if (clouds.points == 0) {
    Case test(layer, clouds, flags.batch(), flags.device());
    return compare_implementations(test);
  }
  clouds.points = std::min(clouds.points, kComparedPoints);
  Case test(layer, clouds, 1, flags.device());
  return compare_implementations(test);
}

void add_grid_figures(const Timing& timing, const AttentionOptions& layer, double useful,
                      const Rates& rates, Json& json) {
  json["fraction_useful"] = rates.fraction() * useful / rates.flops;
  json["weight_bandwidth_gbs"] = weight_bytes(timing, layer) / rates.milliseconds / 1e6;
}

void add_point_figures(const Timing& timing, Json& json) {
  if (timing.products.empty()) return;
  add_times("products_ms", timing.products, json);
  json["products_of_sgemm"] =
      timing.products_gemm / lowest(timing.products) / 1e6 / highest(timing.sgemm);
}

Json measure_layer(const AttentionOptions& layer, const PointCase& clouds,
                   const BenchFlags& flags) {
  torch::manual_seed(0);
  const double max_error = compare(layer, clouds, flags);
  Case test(layer, clouds, flags.batch(), flags.device());
  const auto peak = peak_bytes([&] { test.results(); });
  const auto timing = time_passes(test, flags.repeats(), flags.threads());
  const bool on_grid = clouds.points == 0;
  const double useful =
      on_grid ? 3 * attention_flops(layer) * static_cast<double>(flags.batch()) : 0;
  const Rates rates{executed_flops(timing, useful), lowest(timing.total), timing.sgemm, peak,
                    timing.float32};
  Json json = {{"method", name_of(kMethods, layer.position().method)}};
  add_times("forward_ms", timing.forward, json);
  add_times("backward_ms", timing.backward, json);
  add_rates(rates, flags, json);
  json["max_error"] = max_error;
  if (on_grid)
    add_grid_figures(timing, layer, useful, rates, json);
  else
    add_point_figures(timing, json);
  // If LibTorch computes the pairs, only the projections are counted by our kernels.
  const bool pairs_by_kernels =
      on_grid ? timing.forward_gemm > useful / 6 && layer.position().method != Method::convolution
              : runtime().fused();
  json["implementation"] = pairs_by_kernels ? "fused" : "portable";
  json["recomputed"] = on_grid ? timing.recomputed() : 0;
  return json;
}

std::string title(const AttentionOptions& layer, const PointCase& clouds, const BenchFlags& flags) {
  const auto tokens =
      clouds.points > 0 ? clouds.text() : fmt::format("{} tokens", times(layer.grid()));
  return fmt::format(
      "{}: {}{}{}, {}, {} of {}, batch {}, {}\n{}", name_of(kMethods, layer.position().method),
      tokens, layer.cls() ? " and a class token" : "", layer.causal() ? ", causal" : "",
      counted(layer.dim(), "channel"), counted(layer.heads(), "head"), layer.dim_head(),
      flags.batch(), counted(flags.threads(), "thread"), precision_line(flags.precision()));
}

std::string recomputed_remark(const Json& json) {
  const double percent = 100 * json["recomputed"].get<double>();
  return percent < 1 ? "" : fmt::format("{:.0f} % of forward is recomputed", percent);
}

std::string layer_text(const Json& json) {
  BenchText text(json);
  text.time("forward", "forward_ms");
  text.time("backward", "backward_ms");
  text.rates();
  if (json.contains("fraction_useful"))
    text.number("fraction useful", "fraction_useful", "{:.3f}", "", recomputed_remark(json));
  if (json.contains("products_ms")) {
    text.time("rows of the lattice", "products_ms");
    text.number("of SGEMM", "products_of_sgemm", "{:.3f}");
  }
  text.memory("weights and gradients");
  if (json.contains("weight_bandwidth_gbs"))
    text.number("weight bandwidth", "weight_bandwidth_gbs", "{:.2f}", "GB/s");
  text.number("largest error", "max_error", "{:.1e}", "", "against the portable implementation");
  return text.str();
}

// Weights and the gradients of both implementations; input, output and intermediate features;
// attention maps.
double bytes_of(const AttentionOptions& layer, int64_t batch) {
  double weights = 0;
  for (const auto& spec : attention_parameters(layer)) weights += static_cast<double>(spec.count());
  const auto tokens =
      static_cast<double>(count_tokens({layer.grid(), layer.cls(), layer.causal()}));
  const auto heads = static_cast<double>(layer.heads());
  const double per_token = 4 * static_cast<double>(layer.dim()) +
                           4 * heads * static_cast<double>(layer.dim_head()) + heads * tokens;
  // Beside bf16 runs float32, which saves two encodings of every pair.
  const double saved = layer.precision() == Precision::bf16
                           ? 2 * tokens * heads * static_cast<double>(layer.dim_head())
                           : 0;
  return sizeof(float) * (3 * weights + static_cast<double>(batch) * tokens * (per_token + saved));
}

// The same between points: the rows of three roles, and the pairs, both with gradients.
double bytes_of(const AttentionOptions& layer, const PointCase& clouds, int64_t batch) {
  const auto width = static_cast<double>(layer.heads() * layer.dim_head());
  const auto taps = static_cast<double>(int64_t{1} << clouds.lattice.axes);
  const double of_pair = 16 + taps * (sizeof(int64_t) + 2 * sizeof(float)) +
                         4 * sizeof(float) * static_cast<double>(layer.heads());
  return 6 * sizeof(float) * static_cast<double>(clouds.rows(batch)) * width +
         of_pair * static_cast<double>(clouds.pairs(batch));
}

void run_op(const OpFlags& flags) {
  const auto layer = flags.layer();
  const auto clouds = flags.clouds();
  const int64_t batch = flags.bench.batch();
  require_memory(clouds.points > 0 ? bytes_of(layer, clouds, batch) : bytes_of(layer, batch),
                 "this layer", "lower --batch, or choose a smaller layer");
  use_threads(flags.bench.threads());
  const Json json = measure_layer(layer, clouds, flags.bench);
  flags.bench.show(json,
                   fmt::format("{}\n{}", title(layer, clouds, flags.bench), layer_text(json)));
}

}  // namespace

void add_bench_op(Command bench) {
  auto command = bench.add_command("op", "Measure an attention layer, forward and backward");
  const auto flags = std::make_shared<OpFlags>(command);
  command.footer(kBenchOpExamples);
  command.run([flags] { run_op(*flags); });
}

}  // namespace translution::cli
