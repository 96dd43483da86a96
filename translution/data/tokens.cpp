#include "translution/data/tokens.h"

#include <filesystem>

#include "translution/core/error.h"
#include "translution/core/random.h"

namespace translution {

using namespace detail;

extern const char* const embedded_op;  // docs/op.md

namespace {

constexpr size_t kBuiltInValShare = 10;  // a tenth of the built-in text is for validation

std::string path_of(const std::string& directory, TokenSplit split) {
  const std::string path = directory + (split == TokenSplit::train ? "/train.bin" : "/val.bin");
  ensure(std::filesystem::exists(path), path,
         ": not found; write it with `translution data text FILE --out ", directory, "`");
  return path;
}

void check_size(const TokenView& tokens, std::optional<int64_t> expected, int64_t length) {
  ensure(tokens.size() == expected.value_or(tokens.size()), tokens.path(), ": has ", tokens.size(),
         " tokens, but meta.json says ", expected.value_or(0),
         "; write both again with `translution data text`");
  ensure(tokens.size() > length, tokens.path(), ": has ", tokens.size(),
         " tokens, expected more than the window length of ", length);
}

}  // namespace

TokenDataset::Text TokenDataset::open(const std::string& directory, TokenSplit split) {
  const auto meta = read_token_meta(directory);
  const auto path = path_of(directory, split);
  const auto file = std::make_shared<const MappedFile>(path);
  return {file, file->bytes(), path, meta, split == TokenSplit::train ? meta.train : meta.val};
}

TokenDataset::TokenDataset(const Text& text, const TokenWindows& windows)
    : windows_(windows),
      meta_(text.meta),
      owner_(text.owner),
      tokens_(text.bytes, text.path, meta_.vocabulary) {
  require(windows.length >= 1, "tokens: expected a window length of at least 1, got ",
          windows.length);
  check_size(tokens_, text.expected, windows.length);
  size_ = (tokens_.size() - 1) / windows.length;
  if (windows.shifted && size_ > 1) --size_;
}

TokenDataset::TokenDataset(const std::string& directory, TokenSplit split,
                           const TokenWindows& windows)
    : TokenDataset(open(directory, split), windows) {}

std::shared_ptr<const TokenDataset> TokenDataset::built_in(TokenSplit split,
                                                           const TokenWindows& windows) {
  const std::string_view text = embedded_op;
  const size_t boundary = text.size() - text.size() / kBuiltInValShare;
  const auto part = split == TokenSplit::train ? text.substr(0, boundary) : text.substr(boundary);
  const auto bytes = std::make_shared<std::string>();
  for (const char letter : part) *bytes += {letter, '\0'};
  TokenMeta meta;
  meta.tokenizer = "bytes", meta.vocabulary = Tokenizer::bytes().vocabulary();
  return std::shared_ptr<const TokenDataset>(
      new TokenDataset({bytes, *bytes, "the built-in text", meta, {}}, windows));
}

int64_t TokenDataset::shift(int64_t epoch) const {
  if (!windows_.shifted) return 0;
  const int64_t slack = tokens_.size() - 1 - size_ * windows_.length;
  return Random({windows_.seed, static_cast<uint64_t>(epoch)}).below(slack + 1);
}

Batch TokenDataset::load(const BatchPlan& plan) const {
  const int64_t batch = static_cast<int64_t>(plan.samples.size()), length = windows_.length;
  const int64_t begin = shift(plan.epoch);
  auto both = at::empty({batch, length + 1}, torch::kLong);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t sample = plan.samples[b];
    require(sample >= 0 && sample < size_, "tokens: expected samples from 0 to ", size_ - 1,
            ", got ", sample);
    tokens_.copy(begin + sample * length, length + 1, both.data_ptr<int64_t>() + b * (length + 1));
  }
  return {both.narrow(1, 0, length).contiguous(), both.narrow(1, 1, length).contiguous()};
}

}  // namespace translution
