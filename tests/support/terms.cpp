#include "tests/support/terms.h"

#include <ATen/ATen.h>

#include "translution/core/error.h"

namespace translution::testing {

using namespace detail;

namespace {

constexpr double kScale = 0.6;
constexpr int64_t kContent = 3, kRelativeWidth = 2, kChannels = 3;  // widths per head; features

const char* name(Side side) {
  static const char* const names[] = {"none", "matrices", "features", "vectors"};
  return names[static_cast<int>(side)];
}

at::Tensor get(const Inputs& inputs, const char* name) {
  const auto found = inputs.find(name);
  return found == inputs.end() ? at::Tensor() : found->second;
}

at::Tensor side_by_side(const at::Tensor& out, const at::Tensor& relative_out) {
  const bool content = out.defined() && out.numel() > 0;
  const bool relative = relative_out.defined() && relative_out.numel() > 0;
  if (content && relative) return at::cat({out, relative_out}, 2);
  return content ? out : relative_out;
}

}  // namespace

bool TermsConfig::makes_sense() const {
  const bool relative = q != Side::none;
  const auto has_tokens = [](Side side) {
    return side == Side::matrices || side == Side::features;
  };
  return relative == (k != Side::none) && (content || relative) && (values || v != Side::none) &&
         (content || values || has_tokens(k) || has_tokens(v));
}

std::string TermsConfig::str() const {
  return join("attention content ", content, " rel_q ", name(q), " rel_k ", name(k), " values ",
              values, " rel_v ", name(v), " bias ", bias, " gate ", gate, " keep ", keep, " mask ",
              mask, " causal ", causal, " workspace ", workspace, " rows ", times(rows), " B", B,
              " H", H, " grid ", times(grid), " cls ", cls);
}

TermsCase::TermsCase(TermsConfig config) : config_(std::move(config)) {
  OffsetOptions offsets;
  offsets.grid = config_.grid;
  offsets.cls = config_.cls;
  oracle_call_.pairing = oracle::pair_grid(offsets);
  oracle_call_.heads = config_.H;
  oracle_call_.causal = config_.causal;
  oracle_call_.rows = config_.rows;
  const int64_t N = oracle_call_.pairing.tokens, M = oracle_call_.pairing.slots, B = config_.B,
                H = config_.H;
  const int64_t Nq = config_.rows.empty() ? N : static_cast<int64_t>(config_.rows.size());

  auto random = generator(config_.str());
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    inputs_[name] = normal(shape, random);
  };
  const auto add_side = [&](const std::string& role, Side side, int64_t tokens) {
    const int64_t width = H * kRelativeWidth;
    if (side == Side::matrices) add("rel_" + role, {B, tokens, kChannels});
    if (side == Side::matrices) add("table_" + role, {M, kChannels, width});
    if (side == Side::features) add("rel_" + role, {B, tokens, width});
    if (side == Side::vectors) add("table_" + role, {M, width});
  };
  if (config_.content) add("q", {B, Nq, H * kContent}), add("k", {B, N, H * kContent});
  if (config_.values) add("v", {B, N, H * kContent});
  add_side("q", config_.q, Nq);
  add_side("k", config_.k, N);
  add_side("v", config_.v, N);
  if (config_.bias) add("bias", {M, H});
  if (config_.gate) add("position", {M, H}), add("gate", {H});

  call_.pairs = {pairs_text(OffsetTable(offsets), config_.causal), {}, config_.rows};
  if (config_.keep)
    oracle_call_.keep = call_.keep = (normal({B, H, Nq, N}, random) > -0.3).to(at::kDouble) * 1.6;
  if (config_.mask) oracle_call_.mask = call_.mask = random_mask(B, N, random);
  call_.heads = H;
  call_.scale = kScale;
  if (!config_.workspace) call_.workspace = 0;
}

AttentionTerms TermsCase::terms(const Inputs& in) {
  return {get(in, "q"),       get(in, "k"),     get(in, "v"),        get(in, "rel_q"),
          get(in, "table_q"), get(in, "rel_k"), get(in, "table_k"),  get(in, "rel_v"),
          get(in, "table_v"), get(in, "bias"),  get(in, "position"), get(in, "gate")};
}

AttentionResult TermsCase::attend(const Inputs& inputs) const {
  return translution::attention(terms(inputs), call_);
}

at::Tensor TermsCase::run(const Inputs& inputs) const {
  const auto result = attend(inputs);
  return side_by_side(result.out, result.relative_out);
}

at::Tensor TermsCase::expected() const {
  const auto [out, relative_out] = oracle::attention(terms(inputs_), kScale, oracle_call_);
  return side_by_side(out, relative_out);
}

at::Tensor TermsCase::plain(const Inputs& inputs, rounded_oracle::Rounding rounding) const {
  auto call = oracle_call_;
  if (call.keep.defined()) call.keep = call.keep.to(inputs.begin()->second.scalar_type());
  const auto attended = rounded_oracle::attention(terms(inputs), kScale, call, rounding);
  return side_by_side(attended.out, attended.relative_out);
}

std::vector<TermsConfig> all_terms() {
  constexpr Side kSides[] = {Side::none, Side::matrices, Side::features, Side::vectors};
  std::vector<TermsConfig> configs;
  for (const Side q : kSides)
    for (const Side k : kSides)
      for (const Side v : kSides)
        for (int bits = 0; bits < 16; ++bits) {
          TermsConfig config;
          config.q = q, config.k = k, config.v = v;
          config.content = bits & 1, config.values = bits & 2;
          config.bias = bits & 4, config.gate = bits & 8;
          if (!config.makes_sense()) continue;
          // Different periods, so that every term is combined with every option.
          const size_t n = configs.size();
          config.keep = n % 2 == 1;
          config.causal = n % 3 == 1;
          config.workspace = n % 4 < 2;
          if (n % 5 < 2) config.rows = {3, 0, 6};
          config.mask = n % 11 < 5;
          config.H = 1 + static_cast<int64_t>(n % 3);
          configs.push_back(config);
        }
  return configs;
}

}  // namespace translution::testing
