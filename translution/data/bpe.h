#pragma once

#include <string_view>
#include <vector>

#include "translution/data/bpe_vocabulary.h"

namespace translution {

/// Turns words into tokens: of all neighbours that merge, those with the lowest rank are joined
/// from left to right, until none are left. A word of n bytes takes n log n steps.
class BpeMerger {
 public:
  explicit BpeMerger(const BpeVocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Appends the tokens of the word, which has less than 2^31 bytes.
  void append(std::string_view word, std::vector<int32_t>& tokens);

 private:
  // A piece of the word; those that were joined to their left neighbour are dead.
  struct Piece {
    int32_t token;
    int32_t previous, next;  // -1 and the number of pieces at the ends
    int32_t rank;            // of the merge with the next piece; kNone where there is none
    int32_t merged;          // the token that this merge makes
  };
  struct Candidate {
    int32_t rank, piece;
    // For a heap with the lowest rank, and there the leftmost piece, on top.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : piece > other.piece;
    }
  };

  void start(std::string_view word);
  void look_up(int32_t piece);
  void push(int32_t piece);
  void join_all_of_lowest_rank();
  void join_with_next(int32_t piece);

  const BpeVocabulary& vocabulary_;
  std::vector<Piece> pieces_;
  std::vector<Candidate> heap_;
  std::vector<int32_t> changed_;
};

}  // namespace translution
