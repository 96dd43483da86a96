#pragma once

#include <memory>
#include <string_view>

namespace translution {

/// Splits text into words; GPT-2 merges bytes only within a word:
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// with JavaScript's \s (U+FEFF is a space; U+0085 and U+180E are not) and the letters and numbers
/// of Unicode 17, even if PCRE2 only supports Unicode 14.
/// A byte that is not part of well-formed UTF-8 is a word of its own; the text before and after it
/// is split separately. Thread-safe.
class WordSplitter {
 public:
  WordSplitter();
  ~WordSplitter();

  /// Calls use(std::string_view) for each word, in order. The concatenated words are the text.
  template <typename Use>
  void split(std::string_view text, Use use) const {
    for (Cursor cursor(*this, text); cursor.next();) use(cursor.word());
  }

 private:
  struct Pattern;

  // Iterates over the words of one text.
  class Cursor {
   public:
    Cursor(const WordSplitter& splitter, std::string_view text);
    ~Cursor();
    bool next();
    std::string_view word() const { return word_; }

   private:
    struct Match;
    size_t end_of_word() const;

    const Pattern& pattern_;
    std::unique_ptr<Match> match_;
    std::string_view text_, word_;
    size_t at_ = 0, valid_ = 0;  // text_[at_, valid_) is well-formed
  };

  std::unique_ptr<Pattern> pattern_;
};

/// The number of leading bytes that are well-formed UTF-8.
size_t well_formed(std::string_view text);

}  // namespace translution
