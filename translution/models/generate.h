#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "translution/core/export.h"
#include "translution/models/gpt.h"

namespace translution {

/// How a token is drawn from logits. The cuts are made one after the other: `top_k`, then `top_p`.
struct TRANSLUTION_API SamplingOptions {
  double temperature = 1;  ///< divides the logits; 0: always the most likely token
  int64_t top_k = 0;       ///< only the k most likely tokens; 0: all
  double top_p = 1;        ///< only the most likely tokens that together reach this probability
  uint64_t seed = 0;

  /// Refuses numbers that make no sense.
  void check() const;
};

/// The token at place `position` of a text, drawn from logits [vocabulary]: a function of its
/// arguments alone.
TRANSLUTION_API int64_t sample_token(const torch::Tensor& logits, const SamplingOptions& options,
                                     uint64_t position);

/// Continues a text token by token.
///
/// A causal model's features of a token do not change when others come behind it. So the inputs of
/// every block are kept, depth * [1,length,dim], and a new token computes one row per block: N
/// products for a relative role instead of N * (N + 1) / 2. Each product has a matrix of its own,
/// 420 MB of them for a token at the end of gpt-a-160 with full Translution; there a `Lookahead`
/// per block multiplies for the next tokens too when it reads a matrix.
///
/// The model sees at most `length` tokens. When one more comes, the older half of them is dropped;
/// what is left moves to other places and is computed anew. What the model sees depends on the text
/// alone, never on the pieces in which it was fed.
///
/// The weights must stay as they are while a generator is in use. A model in training mode is in
/// evaluation mode during each call. Several threads may share a model that is in evaluation mode,
/// each with a generator of its own.
class TRANSLUTION_API Generator {
 public:
  /// `cache`: keep the features; without, every token computes the whole context, to compare with.
  explicit Generator(GPT model, SamplingOptions sampling = {}, bool cache = true);

  /// Appends one or more tokens to the text; computes nothing yet.
  void feed(const std::vector<int64_t>& tokens);
  /// Draws the next token and appends it to the text.
  int64_t next();
  /// Of the next token, [vocabulary].
  torch::Tensor logits();

 private:
  void append(int64_t token);
  torch::Tensor run_blocks(torch::Tensor x);
  torch::Tensor run_block(size_t layer, int64_t first, int64_t count);

  GPT model_;
  SamplingOptions sampling_;
  std::vector<int64_t> context_;         // what the model sees of the text
  uint64_t position_ = 0;                // tokens in the text, dropped ones as well
  torch::Tensor logits_;                 // behind the context; undefined: not computed yet
  std::vector<torch::Tensor> features_;  // per block, [1,length,dim]; none without the cache
  int64_t cached_ = 0;                   // tokens of the context that have their features there
  std::vector<std::optional<Lookahead>> lookaheads_;  // per block, where its method has one
};

}  // namespace translution
