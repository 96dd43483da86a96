#pragma once

#include <string>
#include <vector>

#include "tests/support/cases.h"
#include "translution/ops/attention.h"

namespace translution::testing {

/// The kind of a relative side of the core op.
enum class Side { none, matrices, features, vectors };

/// One call of the core op `attention`: which terms are present, and the other arguments.
struct TermsConfig {
  bool content = true;
  Side q = Side::none, k = Side::none;
  bool values = true;
  Side v = Side::none;
  bool bias = false, gate = false, keep = false, mask = false;
  bool causal = false;
  bool workspace = true;  ///< whether forward may save encodings for backward
  std::vector<int64_t> rows;
  int64_t B = 2, H = 2;
  std::vector<int64_t> grid{2, 3};
  bool cls = true;

  /// Returns whether the call is valid: it has scores and values, relative queries and keys are
  /// both present or both absent, and some term has the number of tokens N.
  bool makes_sense() const;
  std::string str() const;
};

/// The core op with random terms, named as in AttentionTerms.
class TermsCase {
 public:
  explicit TermsCase(TermsConfig config);

  const Inputs& inputs() const { return inputs_; }
  const AttentionCall& call() const { return call_; }
  AttentionCall& call() { return call_; }

  AttentionResult attend(const Inputs& inputs) const;
  /// out and relative_out side by side, [B, Nq, F + S].
  at::Tensor run(const Inputs& inputs) const;
  at::Tensor expected() const;
  /// The same formula in plain LibTorch operations, in the type of the inputs.
  at::Tensor plain(const Inputs& inputs, rounded_oracle::Rounding rounding) const;

  static AttentionTerms terms(const Inputs& inputs);

 private:
  TermsConfig config_;
  oracle::Call oracle_call_;
  AttentionCall call_;
  Inputs inputs_;
};

/// Every valid combination of terms. Masks, causal, rows and so on alternate.
std::vector<TermsConfig> all_terms();

}  // namespace translution::testing
