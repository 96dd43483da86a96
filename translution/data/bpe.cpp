#include "translution/data/bpe.h"

#include <algorithm>
#include <limits>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

constexpr int32_t kNone = -1;

}  // namespace

void BpeMerger::append(std::string_view word, std::vector<int32_t>& tokens) {
  require(word.size() < std::numeric_limits<int32_t>::max(),
          "tokenizer: expected words of less than 2 GiB, got ", word.size(), " bytes");
  begin_word(word);
  while (!heap_.empty()) join_all_of_lowest_rank();
  const auto count = static_cast<int32_t>(pieces_.size());
  for (int32_t i = 0; i < count; i = pieces_[i].next) tokens.push_back(pieces_[i].token);
}

void BpeMerger::begin_word(std::string_view word) {
  const auto count = static_cast<int32_t>(word.size());
  pieces_.clear();
  for (int32_t i = 0; i < count; ++i) {
    const int32_t token = vocabulary_.byte_tokens[static_cast<unsigned char>(word[i])];
    pieces_.push_back({token, i - 1, i + 1, kNone, kNone});
  }
  for (int32_t i = 0; i + 1 < count; ++i) {
    look_up(i);
    if (pieces_[i].rank != kNone) heap_.push_back({pieces_[i].rank, i});
  }
  std::make_heap(heap_.begin(), heap_.end());
}

// Looks up the merge of a piece with the next one.
void BpeMerger::look_up(int32_t i) {
  Piece& piece = pieces_[i];
  piece.rank = kNone;
  if (piece.next == static_cast<int32_t>(pieces_.size())) return;
  const auto pair = BpeVocabulary::pair_key(piece.token, pieces_[piece.next].token);
  const auto merge = vocabulary_.merges.find(pair);
  if (merge == vocabulary_.merges.end()) return;
  piece.rank = merge->second.rank;
  piece.merged = merge->second.token;
}

void BpeMerger::push(int32_t i) {
  look_up(i);
  if (pieces_[i].rank == kNone) return;
  heap_.push_back({pieces_[i].rank, i});
  std::push_heap(heap_.begin(), heap_.end());
}

// Queues new pairs only after all pairs of this rank are joined: a new pair can have a lower rank
// if the vocabulary has two ways to make a token.
void BpeMerger::join_all_of_lowest_rank() {
  const int32_t rank = heap_.front().rank;
  changed_.clear();
  while (!heap_.empty() && heap_.front().rank == rank) {
    const int32_t piece = heap_.front().piece;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    if (pieces_[piece].rank == rank) join_with_next(piece);  // otherwise the entry is outdated
  }
  for (const int32_t piece : changed_) push(piece);
}

void BpeMerger::join_with_next(int32_t i) {
  Piece& piece = pieces_[i];
  Piece& next = pieces_[piece.next];
  piece.token = piece.merged;
  next.rank = kNone;
  piece.next = next.next;
  if (piece.next < static_cast<int32_t>(pieces_.size())) pieces_[piece.next].previous = i;
  const bool listed = !changed_.empty() && changed_.back() == piece.previous;
  if (piece.previous >= 0 && !listed) changed_.push_back(piece.previous);
  changed_.push_back(i);
}

}  // namespace translution
