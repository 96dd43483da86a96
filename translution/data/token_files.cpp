#include "translution/data/token_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/io/atomic_file.h"
#include "translution/io/disk.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMetaFile = "/meta.json";
constexpr int64_t kMaxMetaBytes = 1 << 16;
constexpr int64_t kMaxTokens = 65536;  // distinct values of 16 bits

// The value at a key, short enough for a message. Prints only the type of arrays and objects, since
// printing deeply nested ones takes one recursive call per level.
std::string shown(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "nothing";
  return found->is_structured() ? found->type_name() : found->dump(-1, ' ', true).substr(0, 40);
}

// The integer at a key; throws unless it is from `least` to `most`.
int64_t number_at(const Json& object, const char* key, int64_t least, int64_t most,
                  const std::string& path) {
  const auto found = object.find(key);
  const bool integer = found != object.end() && found->is_number_unsigned();
  const uint64_t value = integer ? found->get<uint64_t>() : 0;
  ensure(integer && value >= static_cast<uint64_t>(least) && value <= static_cast<uint64_t>(most),
         path, ": expected '", key, "' as a whole number from ", least, " to ", most, ", got ",
         shown(object, key));
  return static_cast<int64_t>(value);
}

// Two bytes per token, little-endian.
std::string packed(const std::vector<int32_t>& tokens) {
  std::string bytes;
  bytes.reserve(2 * tokens.size());
  for (const int32_t token : tokens) {
    bytes += static_cast<char>(token & 0xff);
    bytes += static_cast<char>(token >> 8);
  }
  return bytes;
}

}  // namespace

// -------------------------------------------------------------------------------- meta.json

std::string TokenMeta::summary() const {
  return join(tokenizer, ", ", vocabulary, " tokens",
              assumed() ? " (assumed: there is no meta.json)" : "");
}

TokenMeta parse_token_meta(std::string_view json, const std::string& path) {
  ensure(json.size() <= kMaxMetaBytes, path, ": has ", json.size(), " bytes, expected at most ",
         kMaxMetaBytes);
  const Json object = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  ensure(object.is_object(), path,
         ": is not a JSON object; write it again with `translution data text`");
  TokenMeta meta;
  const auto tokenizer = object.find("tokenizer");
  ensure(tokenizer != object.end() && (*tokenizer == "bytes" || *tokenizer == "gpt2"), path,
         ": expected 'tokenizer' as \"bytes\" or \"gpt2\", got ", shown(object, "tokenizer"));
  meta.tokenizer = *tokenizer;
  const int64_t bytes = Tokenizer::bytes().vocabulary();
  meta.vocabulary =
      number_at(object, "vocabulary", bytes, meta.tokenizer == "bytes" ? bytes : kMaxTokens, path);
  constexpr int64_t kMax = int64_t{1} << 62;
  meta.train = number_at(object, "train_tokens", 0, kMax, path);
  meta.val = number_at(object, "val_tokens", 0, kMax, path);
  return meta;
}

TokenMeta read_token_meta(const std::string& directory) {
  const std::string path = directory + kMetaFile;
  if (!std::filesystem::exists(path)) return {};
  return parse_token_meta(read_file(path, kMaxMetaBytes), path);
}

Tokenizer read_tokenizer(const std::string& directory) {
  ensure(std::filesystem::is_directory(directory), directory,
         ": no such directory; expected the one with the tokens: --data tokens:DIR");
  const TokenMeta meta = read_token_meta(directory);
  if (meta.tokenizer == "bytes") return Tokenizer::bytes();
  const Tokenizer tokenizer = Tokenizer::gpt2(directory);
  ensure(tokenizer.vocabulary() == meta.vocabulary, directory, "/", Tokenizer::kEncoderFile,
         ": has ", tokenizer.vocabulary(), " tokens, but meta.json says ", meta.vocabulary);
  return tokenizer;
}

void write_token_directory(const std::string& directory, const Tokenizer& tokenizer,
                           const std::string& bpe, const std::vector<int32_t>& train,
                           const std::vector<int32_t>& val) {
  disk::make_directories(directory);
  const Json meta = {{"tokenizer", tokenizer.name()},
                     {"vocabulary", tokenizer.vocabulary()},
                     {"train_tokens", train.size()},
                     {"val_tokens", val.size()}};
  if (tokenizer.name() == "gpt2")
    for (const char* name : {Tokenizer::kEncoderFile, Tokenizer::kMergesFile})
      write_file_atomically(join(directory, "/", name), read_file(join(bpe, "/", name)));
  write_file_atomically(directory + "/train.bin", packed(train));
  write_file_atomically(directory + "/val.bin", packed(val));
  write_file_atomically(directory + kMetaFile, meta.dump(2) + "\n");
}

// -------------------------------------------------------------------------------- .bin files

TokenView::TokenView(std::string_view bytes, std::string path, int64_t vocabulary)
    : bytes_(bytes), path_(std::move(path)), vocabulary_(vocabulary) {
  ensure(bytes.size() % 2 == 0, path_, ": has ", bytes.size(),
         " bytes, expected two per token; is it truncated?");
}

void TokenView::copy(int64_t first, int64_t count, int64_t* out) const {
  require(first >= 0 && count >= 0 && first <= size() && count <= size() - first, path_,
          ": expected ", count, " tokens starting at ", first, ", the file has ", size());
  const auto* bytes = reinterpret_cast<const unsigned char*>(bytes_.data()) + 2 * first;
  for (int64_t i = 0; i < count; ++i) {
    out[i] = bytes[2 * i] | bytes[2 * i + 1] << 8;
    ensure(out[i] < vocabulary_, path_, ": token ", out[i], " at position ", first + i,
           ", expected less than the vocabulary of ", vocabulary_);
  }
}

}  // namespace translution
