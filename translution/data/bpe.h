#pragma once

#include <string_view>
#include <vector>

#include "translution/data/bpe_vocabulary.h"

namespace translution {

/// Turns words into tokens: repeatedly joins all adjacent pairs with the lowest rank, from left to
/// right, until no pair can merge. A word of n bytes takes O(n log n) time.
class BpeMerger {
 public:
  explicit BpeMerger(const BpeVocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Appends the tokens of the word, which must have fewer than 2^31 bytes.
  void append(std::string_view word, std::vector<int32_t>& tokens);

 private:
  // A piece of the word. A piece that was joined to its left neighbour is no longer reachable.
  struct Piece {
    int32_t token;
    int32_t previous, next;  // -1 before the first piece, pieces_.size() after the last
    int32_t rank;            // of the merge with the next piece; kNone if they do not merge
    int32_t merged;          // the token that this merge produces
  };
  struct Candidate {
    int32_t rank, piece;
    // Puts the lowest rank on top of the heap; among equal ranks, the leftmost piece.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : piece > other.piece;
    }
  };

  void begin_word(std::string_view word);
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
