#include "translution/ops/convolution.h"

#include <ATen/ATen.h>

#include <optional>

#include "translution/core/message.h"
#include "translution/ops/check.h"
#include "translution/ops/padding.h"
#include "translution/ops/pair_groups.h"
#include "translution/ops/parallel.h"
#include "translution/ops/part_sums.h"
#include "translution/ops/register.h"
#include "translution/ops/relative_side.h"
#include "translution/ops/rounding.h"

namespace translution {

using namespace detail;

namespace {

using Tensors = std::vector<at::Tensor>;
using ConvolutionForward = at::Tensor(const at::Tensor& x, const at::Tensor& weight,
                                      const std::string& pairs, at::IntArrayRef grid,
                                      at::IntArrayRef rows, const std::string& precision,
                                      const OptionalTensor& mask, const std::string& group);
using ConvolutionBackward = std::tuple<at::Tensor, at::Tensor>(
    const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& weight,
    const std::string& pairs, at::IntArrayRef grid, at::IntArrayRef rows, int64_t needs,
    const std::string& precision, const std::string& group);

constexpr const char* kConvolution = "convolution";
// Bits of `needs`: the gradients that backward computes.
constexpr int64_t kNeedsX = 1, kNeedsWeight = 2;

// Checks the call; returns the number of query rows.
c10::SymInt check_convolution(const at::Tensor& x, const at::Tensor& weight,
                              const std::string& pairs, at::IntArrayRef rows,
                              const std::string& precision, const OptionalTensor& mask,
                              const std::string& group) {
  Checker check(kConvolution, parse_name("precision", kPrecisions, precision));
  check.tensor("x", x, 3, "[B, N, C]");
  TORCH_CHECK(x.sym_size(1) > 0, kConvolution, ": expected one or more tokens, got x ",
              x.sym_sizes());
  check.tensor("weight", weight, 3, "[slots, C, width], one matrix per slot");
  check.size("weight", weight, 1, x.sym_size(2), "the channels of x");
  const auto offsets = find_offsets(pairs);
  TORCH_CHECK(offsets, kConvolution, ": expected pairs with slots, such as '7x7 window=1', got ",
              in_quotes(pairs));
  check_group(kConvolution, pairs, group);
  check.size("weight", weight, 0, count_rows(pairs), "the slots of the pairs");
  if (mask.has_value()) check.padding(*mask, x.sym_size(0), x.sym_size(1));
  return rows.empty() ? x.sym_size(1) : c10::SymInt(static_cast<int64_t>(rows.size()));
}

// The pairs, the features with the weight table, and the weight of each pair: 1 if the pair is
// open, otherwise 0. With bfloat16 products the features are float32.
struct Problem {
  Precision precision;
  at::TensorOptions options;
  std::shared_ptr<const Pairs> pairs;
  std::shared_ptr<const PairGroups> groups;
  PartSums sums;
  at::Tensor weights;  // [P,1,1]
  RelativeSide side;

  Problem(const at::Tensor& x, const at::Tensor& weight, const std::string& text,
          at::IntArrayRef grid, at::IntArrayRef rows, const std::string& requested,
          const std::string& group)
      : precision(multiplies_bf16(parse_name("precision", kPrecisions, requested), x)
                      ? Precision::bf16
                      : Precision::float32),
        options(precision == Precision::bf16 ? x.options().dtype(at::kFloat) : x.options()),
        pairs(find_pairs({text, grid.vec(), rows.vec(), x.size(1)})),
        groups(group_pairs(*pairs, x.device())),
        sums(group, pairs),
        side(x.to(c10::typeMetaToScalarType(options.dtype())), weight, x.size(0), precision) {
    weights = groups->closed.defined()
                  ? groups->closed.flatten().index_select(0, groups->index).logical_not()
                  : at::ones({groups->index.size(0)}, options);
    weights = weights.to(c10::typeMetaToScalarType(options.dtype())).view({-1, 1, 1});
  }

  at::Tensor weights_of(const PairGroup& group, int64_t batch) const {
    return weights.narrow(0, group.begin, group.count).expand({group.count, batch, 1});
  }
};

// Restricts LibTorch to one thread for a group that is summed with matrix products, because
// LibTorch splits products by the number of threads. Only the few groups of a class token are.
struct ReproducibleProducts {
  explicit ReproducibleProducts(const PairGroup& group) {
    if (!group.matching) one_thread.emplace();
  }
  std::optional<OneThread> one_thread;
};

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const std::string& pairs,
                    at::IntArrayRef grid, at::IntArrayRef rows, const std::string& precision,
                    const OptionalTensor& mask, const std::string& group) {
  check_convolution(x, weight, pairs, rows, precision, mask, group);
  const Problem problem(clear_padding(x, value_or_undefined(mask)), weight, pairs, grid, rows,
                        precision, group);
  const auto rows_of = [&](const PairGroup& pair_group) {
    const auto v = problem.side.encode(pair_group.slot, pair_group.keys);
    const ReproducibleProducts reproducible(pair_group);
    return pair_mix(pair_group, problem.weights_of(pair_group, x.size(0)), v);
  };
  const auto out =
      problem.groups->sum(x.size(0), weight.size(2), problem.options, rows_of);  // [Nq,B,C']
  problem.sums.add({out});
  return out.transpose(0, 1).contiguous().to(x.scalar_type());
}

at::Tensor convolve_plain(const at::Tensor& x, const at::Tensor& weight, const std::string& pairs,
                          at::IntArrayRef grid, at::IntArrayRef rows, const std::string& precision,
                          const OptionalTensor& mask, const std::string& group) {
  TORCH_CHECK(group.empty(), "convolution: forward mode and second derivatives need all slots in ",
              "one process, got a part of them");
  return convolve(x, weight, pairs, grid, rows, precision, mask, group);
}

at::Tensor convolve_meta(const at::Tensor& x, const at::Tensor& weight, const std::string& pairs,
                         at::IntArrayRef, at::IntArrayRef rows, const std::string& precision,
                         const OptionalTensor& mask, const std::string& group) {
  const auto queries = check_convolution(x, weight, pairs, rows, precision, mask, group);
  return at::empty_symint({x.sym_size(0), queries, weight.sym_size(2)}, x.options());
}

// Stands for a gradient that is not needed.
at::Tensor nothing(const at::Tensor& x) { return at::empty({0}, x.options()); }

std::tuple<at::Tensor, at::Tensor> convolve_backward(const at::Tensor& d_out, const at::Tensor& x,
                                                     const at::Tensor& weight,
                                                     const std::string& pairs, at::IntArrayRef grid,
                                                     at::IntArrayRef rows, int64_t needs,
                                                     const std::string& precision,
                                                     const std::string& group) {
  Problem problem(x, weight, pairs, grid, rows, precision, group);
  problem.side.begin_backward(needs & kNeedsX, needs & kNeedsWeight);
  const auto d_tokens = d_out.to(problem.options).transpose(0, 1);  // [Nq,B,C']
  for (const PairGroup& pair_group : problem.groups->groups) {
    const auto v = problem.side.encode(pair_group.slot, pair_group.keys);
    at::Tensor dv;
    {
      const ReproducibleProducts reproducible(pair_group);
      dv = pair_mix_backward(pair_group, d_tokens.index_select(0, pair_group.queries),
                             problem.weights_of(pair_group, x.size(0)), v)
               .second;
    }
    problem.side.add_gradient(pair_group.slot, pair_group.keys, dv);
  }
  auto dx = problem.side.dx();
  problem.sums.add_defined({&dx});
  return {needs & kNeedsX ? dx.contiguous().to(x.scalar_type()) : nothing(x),
          needs & kNeedsWeight ? problem.side.dtable() : nothing(x)};
}

std::tuple<at::Tensor, at::Tensor> convolve_backward_plain(
    const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& weight,
    const std::string& pairs, at::IntArrayRef grid, at::IntArrayRef rows, int64_t needs,
    const std::string& precision, const std::string& group) {
  const auto forward = [&](const Tensors& given) {
    return Tensors{convolve_plain(given[0], given[1], pairs, grid, rows, precision, {}, group)};
  };
  const bool needs_x = needs & kNeedsX, needs_weight = needs & kNeedsWeight;
  const auto grads = plain_gradients(forward, {x, weight}, {d_out}, {needs_x, needs_weight});
  return {needs_x ? grads[0] : nothing(x), needs_weight ? grads[1] : nothing(x)};
}

std::tuple<at::Tensor, at::Tensor> convolve_backward_meta(const at::Tensor&, const at::Tensor& x,
                                                          const at::Tensor& weight,
                                                          const std::string&, at::IntArrayRef,
                                                          at::IntArrayRef, int64_t needs,
                                                          const std::string&, const std::string&) {
  return {needs & kNeedsX ? empty_of(x) : nothing(x),
          needs & kNeedsWeight ? empty_of(weight) : nothing(x)};
}

at::Tensor convolve_autograd(const at::Tensor& x, const at::Tensor& weight,
                             const std::string& pairs, at::IntArrayRef grid, at::IntArrayRef rows,
                             const std::string& precision, const OptionalTensor& mask,
                             const std::string& group) {
  if (mask.has_value()) check_convolution(x, weight, pairs, rows, precision, mask, group);
  // Autograd records that padding is cleared, so the backward op needs no mask.
  const auto features = clear_padding(x, value_or_undefined(mask));
  const PairsName name{pairs, grid.vec(), rows.vec()};
  const Differentiable call(kConvolution, {features, weight});
  const auto out = call.below([&] {
    return convolution(features, weight, name, parse_name("precision", kPrecisions, precision), {},
                       group);
  });
  call.finish({out}, {features, weight},
              [name, precision, group](const BackwardCall& b) -> Tensors {
                static const Op<ConvolutionBackward> op("translution::convolution_backward");
                const int64_t needs = (b.needs[0] ? kNeedsX : 0) | (b.needs[1] ? kNeedsWeight : 0);
                const auto [dx, dweight] = op(b.d[0], b.saved[0], b.saved[1], name.text, name.grid,
                                              name.rows, needs, precision, group);
                return {b.needs[0] ? dx : at::Tensor(), b.needs[1] ? dweight : at::Tensor()};
              });
  return out;
}

}  // namespace

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const PairsName& pairs,
                       Precision precision, const at::Tensor& mask, const std::string& group) {
  static const Op<ConvolutionForward> op("translution::convolution");
  // The dispatcher does not accept undefined tensors.
  TORCH_CHECK(x.defined(), kConvolution, ": x [B, N, C] is missing");
  TORCH_CHECK(weight.defined(), kConvolution, ": weight [slots, C, width] is missing");
  return op(x, weight, pairs.text, pairs.grid, pairs.rows, name_of(kPrecisions, precision),
            optional(mask), group);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<ConvolutionForward>(
      m,
      "convolution(Tensor x, Tensor weight, str pairs, int[] grid=[], int[] rows=[], "
      "str precision='float32', Tensor? mask=None, str group='') -> Tensor",
      {convolve, nullptr, convolve_meta, convolve_autograd, convolve_plain});
  register_op<ConvolutionBackward>(
      m,
      "convolution_backward(Tensor d_out, Tensor x, Tensor weight, str pairs, int[] grid, "
      "int[] rows, int needs=3, str precision='float32', str group='') -> (Tensor, Tensor)",
      {convolve_backward, nullptr, convolve_backward_meta, nullptr, convolve_backward_plain});
}

}  // namespace translution
