#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "translution/core/export.h"
#include "translution/models/gpt.h"

namespace translution {

/// How a token is drawn from logits. `top_k` is applied first, then `top_p`.
struct TRANSLUTION_API SamplingOptions {
  double temperature = 1;  ///< divides the logits; 0: always the most likely token
  int64_t top_k = 0;       ///< draw from the k most likely tokens; 0: all
  double top_p = 1;        ///< draw from the fewest most likely tokens with this total probability
  uint64_t seed = 0;

  /// Throws on values out of range.
  void check() const;
};

/// Draws the token at index `position` of a text from logits [vocabulary]. The result depends only
/// on the arguments.
TRANSLUTION_API int64_t sample_token(const torch::Tensor& logits, const SamplingOptions& options,
                                     uint64_t position);

/// Continues a text token by token.
///
/// In a causal model, later tokens do not change the features of earlier ones. So the inputs of
/// every block are cached, depth * [1,length,dim], and a new token computes one row per block: N
/// products for a relative role instead of N * (N + 1) / 2. Each product reads a different matrix,
/// 420 MB in all for the last token of gpt-a-160 with full Translution. There, one `Lookahead` per
/// block also multiplies a matrix for the next tokens when it reads it.
///
/// The context is at most `length` tokens. When it is full, its older half is dropped; the
/// remaining tokens move to new positions and are recomputed. The context depends only on the text,
/// not on the pieces in which it was fed.
///
/// Do not change the weights while a generator is in use. A model in training mode is switched to
/// evaluation mode during each call. Several threads may share a model that is in evaluation mode,
/// each with its own generator.
class TRANSLUTION_API Generator {
 public:
  /// With `cache` off, every token recomputes the whole context; for comparisons.
  explicit Generator(GPT model, SamplingOptions sampling = {}, bool cache = true);

  /// Appends one or more tokens to the text; computes nothing yet.
  void feed(const std::vector<int64_t>& tokens);
  /// Draws the next token and appends it to the text.
  int64_t next();
  /// Logits of the next token, [vocabulary].
  torch::Tensor logits();

 private:
  void append(int64_t token);
  torch::Tensor run_blocks(torch::Tensor x);
  torch::Tensor run_block(size_t layer, int64_t first, int64_t count);

  GPT model_;
  SamplingOptions sampling_;
  std::vector<int64_t> context_;         // the last tokens of the text, at most `length`
  uint64_t position_ = 0;                // number of tokens in the text, including dropped ones
  torch::Tensor logits_;                 // of the next token; undefined: not computed yet
  std::vector<torch::Tensor> features_;  // per block, [1,length,dim]; empty without the cache
  int64_t cached_ = 0;                   // number of context tokens in features_
  std::vector<std::optional<Lookahead>> lookaheads_;  // per block; nullopt if not supported
};

}  // namespace translution
