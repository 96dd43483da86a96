#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "tests/bad_input/wrong_calls.h"
#include "tests/models/tiny_models.h"
#include "translution/nn/attention.h"
#include "translution/ops/compat.h"
#include "translution/ops/convolution.h"
#include "translution/ops/methods.h"
#include "translution/ops/project.h"

namespace translution {

using namespace detail;

namespace {

using At = at::ScalarType;

// The types of x and of the weights, and the precision.
struct Types {
  At x, weights;
  Precision precision;
};

// 5 tokens of 6 channels; weights are for 3 heads of 4 channels and 9 slots.
at::Tensor features(const Types& types) { return at::zeros({2, 5, 6}, types.x); }

AttentionCall call_in(Precision precision) {
  AttentionCall call;
  call.heads = 3;
  call.pairs.text = "5";
  call.precision = precision;
  return call;
}

// Calls an op with tensors of these types.
using Op = void (*)(const Types&);

void project_op(const Types& t) {
  project(features(t), {at::zeros({6, 4}, t.weights)}, {}, false, t.precision);
}

void attention_op(const Types& t) {
  AttentionTerms terms;
  terms.q = at::zeros({2, 5, 12}, t.x);
  terms.k = terms.v = at::zeros({2, 5, 12}, t.weights);
  attention(terms, call_in(t.precision));
}

void relative_attention_op(const Types& t) {
  AttentionTerms terms;
  terms.rel_q = terms.rel_k = terms.rel_v = features(t);
  terms.table_q = terms.table_k = terms.table_v = at::zeros({9, 6, 12}, t.weights);
  attention(terms, call_in(t.precision));
}

void translution_op(const Types& t) {
  const auto table = at::zeros({9, 6, 12}, t.weights);
  translution(features(t), {table, table, table}, call_in(t.precision));
}

void alpha_op(const Types& t) {
  const auto shared = at::zeros({6, 12}, t.weights), down = at::zeros({6, 6}, t.weights),
             table = at::zeros({9, 6, 6}, t.weights);
  alpha_translution(features(t),
                    {{shared, shared, shared}, {down, down, down}, {table, table, table}, shared},
                    call_in(t.precision));
}

void self_attention_op(const Types& t) {
  const auto matrix = at::zeros({6, 12}, t.weights);
  self_attention(features(t), {matrix, matrix, matrix}, {}, call_in(t.precision));
}

void convolution_op(const Types& t) {
  convolution(features(t), at::zeros({3, 6, 12}, t.weights), {"5 window=1"}, t.precision);
}

void layer(const Types& t) {
  Attention made(AttentionOptions(6).heads(3).dim_head(4).grid({5}).precision(t.precision));
  made->to(t.weights);
  made->forward(features(t));
}

void vit(const Types& t) {
  auto options = tiny_vit();
  options.precision = t.precision;
  ViT made(options);
  made->to(t.weights);
  made->forward(at::zeros({2, 2, 12, 8}, t.x));
}

void gpt(const Types& t) {
  auto options = tiny_gpt();
  options.precision = t.precision;
  GPT made(options);
  made->to(t.weights);
  made->forward(at::zeros({2, 7}, at::kLong));
}

WrongCall wrong(const std::string& name, Op op, const Types& types, const std::string& message) {
  return {name, [op, types] { op(types); }, message};
}

std::vector<WrongCall> wrong_types() {
  struct Subject {
    const char* name;
    Op op;
    const char* prefix;  // of the message
    const char* x;       // names of the tensors in the message
    const char* weight;
  };
  const Subject subjects[] = {
      {"a projection", project_op, "project", "x", "weight"},
      {"an attention", attention_op, "attention", "q", "k"},
      {"a relative attention", relative_attention_op, "attention", "rel_q", "table_q"},
      {"translution", translution_op, "translution", "x", "q"},
      {"alpha-translution", alpha_op, "alpha_translution", "x", "shared v"},
      {"self-attention", self_attention_op, "self_attention", "x", "q"},
      {"a convolution", convolution_op, "convolution", "x", "weight"},
      {"a layer", layer, "translution", "x", "q"},
  };
  std::vector<WrongCall> calls;
  for (const auto& s : subjects) {
    const auto takes = [&s](const char* name, const char* type) {
      return join(s.prefix, ": precision bf16 takes float32 or bfloat16 tensors, but ", name,
                  " is ", type, "; convert it, or use precision float32");
    };
    const auto mixes = [&s](const char* weights, const char* x) {
      return join(s.prefix, ": ", s.weight, " is ", weights, " but ", s.x, " is ", x,
                  "; convert one of them");
    };
    calls.push_back(wrong(join(s.name, " of doubles in bf16"), s.op,
                          {at::kDouble, at::kDouble, Precision::bf16}, takes(s.x, "Double")));
    calls.push_back(wrong(join(s.name, " of halves in bf16"), s.op,
                          {at::kHalf, at::kFloat, Precision::bf16}, takes(s.x, "Half")));
    calls.push_back(wrong(join(s.name, " with weights of doubles in bf16"), s.op,
                          {at::kFloat, at::kDouble, Precision::bf16}, takes(s.weight, "Double")));
    calls.push_back(wrong(join(s.name, " with weights of bfloat16 in float32"), s.op,
                          {at::kFloat, at::kBFloat16, Precision::float32},
                          mixes("BFloat16", "Float")));
    calls.push_back(wrong(join(s.name, " of bfloat16 with weights of float32 in float32"), s.op,
                          {at::kBFloat16, at::kFloat, Precision::float32},
                          mixes("Float", "BFloat16")));
  }
  return calls;
}

std::vector<WrongCall> wrong_models() {
  const Types doubles{at::kDouble, at::kDouble, Precision::bf16};
  return {
      wrong("a ViT of doubles in bf16", vit, doubles,
            "project: precision bf16 takes float32 or bfloat16 tensors, but x is Double; convert "
            "it, or use precision float32"),
      wrong("a GPT of doubles in bf16", gpt, doubles,
            "translution: precision bf16 takes float32 or bfloat16 tensors, but x is Double; "
            "convert it, or use precision float32"),
      {"a mask of doubles in bf16",
       [] {
         AttentionTerms terms;
         terms.q = terms.k = terms.v = at::zeros({2, 5, 12});
         auto call = call_in(Precision::bf16);
         call.keep = at::ones({2, 3, 5, 5}, at::kDouble);
         attention(terms, call);
       },
       "attention: precision bf16 takes float32 or bfloat16 tensors, but keep is Double; convert "
       "it, or use precision float32"},
  };
}

// The registered op, as Python calls it.
void convolve_in(const std::string& precision) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("translution::convolution", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const std::string&,
                            at::IntArrayRef, at::IntArrayRef, const std::string&,
                            const OptionalTensor&, const std::string&)>();
  op.call(at::zeros({2, 5, 6}), at::zeros({3, 6, 12}), "5 window=1", {}, {}, precision, {}, "");
}

std::vector<WrongCall> wrong_names() {
  return {
      {"a precision with a typing error", [] { parse_name("precision", kPrecisions, "bf61"); },
       "unknown precision 'bf61'; did you mean 'bf16'?"},
      {"a precision with PyTorch's name", [] { parse_name("precision", kPrecisions, "bfloat16"); },
       "unknown precision 'bfloat16'; expected one of float32, bf16"},
      {"an empty precision", [] { parse_name("precision", kPrecisions, ""); },
       "unknown precision ''; expected one of float32, bf16"},
      {"an op in an unknown precision", [] { convolve_in("fp8"); },
       "unknown precision 'fp8'; expected one of float32, bf16"},
  };
}

}  // namespace

std::vector<WrongCall> wrong_precision_calls() {
  std::vector<WrongCall> all;
  for (const auto& calls : {wrong_types(), wrong_models(), wrong_names()})
    all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

}  // namespace translution
