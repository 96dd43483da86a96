#include "translution/data/tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "translution/core/error.h"
#include "translution/data/bpe.h"
#include "translution/data/words.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kBytes = 256;
constexpr int64_t kMaxFileBytes = 8 << 20;  // GPT-2's files have 1.0 and 0.5 MB

// Caches the position of recent words' tokens in the output. A new word replaces an old one with
// the same hash. This doubles the speed for English text.
class WordCache {
 public:
  explicit WordCache(size_t text_bytes) {
    size_t size = 16;
    while (size < kMaxEntries && size < text_bytes) size *= 2;
    entries_.resize(size);
  }

  struct Entry {
    std::string_view word;
    size_t begin = 0, end = 0;  // of its tokens
  };

  Entry& find(std::string_view word) {
    return entries_[std::hash<std::string_view>()(word) & (entries_.size() - 1)];
  }

 private:
  static constexpr size_t kMaxEntries = 1 << 16;  // 2 MB

  std::vector<Entry> entries_;
};

}  // namespace

struct Tokenizer::Bpe {
  explicit Bpe(BpeVocabulary v) : vocabulary(std::move(v)) {}

  std::vector<int32_t> encode(std::string_view text) const;

  const BpeVocabulary vocabulary;
  const WordSplitter splitter;
};

std::vector<int32_t> Tokenizer::Bpe::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  BpeMerger merger(vocabulary);
  WordCache cache(text.size());
  splitter.split(text, [&](std::string_view word) {
    auto& entry = cache.find(word);
    const size_t begin = tokens.size();
    if (entry.word == word) {
      for (size_t i = entry.begin; i < entry.end; ++i) tokens.push_back(tokens[i]);
    } else {
      merger.append(word, tokens);
      entry = {word, begin, tokens.size()};
    }
  });
  return tokens;
}

Tokenizer::Tokenizer(std::shared_ptr<const Bpe> bpe) : bpe_(std::move(bpe)) {}

Tokenizer Tokenizer::bytes() { return Tokenizer(nullptr); }

Tokenizer Tokenizer::gpt2(BpeVocabulary vocabulary) {
  return Tokenizer(std::make_shared<Bpe>(std::move(vocabulary)));
}

Tokenizer Tokenizer::gpt2(const std::string& directory) {
  const std::string encoder = directory + "/" + kEncoderFile;
  const std::string merges = directory + "/" + kMergesFile;
  for (const auto& path : {encoder, merges})
    ensure(std::filesystem::exists(path), path,
           ": not found; fetch it with scripts/fetch-gpt2-bpe ", directory);
  return gpt2(parse_bpe_vocabulary(read_file(encoder, kMaxFileBytes),
                                   read_file(merges, kMaxFileBytes), encoder, merges));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  if (bpe_) return bpe_->encode(text);
  std::vector<int32_t> tokens(text.size());
  std::transform(text.begin(), text.end(), tokens.begin(),
                 [](char letter) { return static_cast<unsigned char>(letter); });
  return tokens;
}

std::string Tokenizer::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    require(token >= 0 && token < vocabulary(), "tokenizer ", name(),
            ": expected tokens from 0 to ", vocabulary() - 1, ", got ", token);
    if (bpe_)
      text += bpe_->vocabulary.tokens[token];
    else
      text += static_cast<char>(token);
  }
  return text;
}

int64_t Tokenizer::vocabulary() const {
  return bpe_ ? static_cast<int64_t>(bpe_->vocabulary.tokens.size()) : kBytes;
}

}  // namespace translution
