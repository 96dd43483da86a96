#include "translution/train/manifest.h"

#include <limits>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/io/checksum.h"
#include "translution/io/strict_json.h"

namespace translution {

using namespace detail;

namespace {

using Json = nlohmann::json;

constexpr std::string_view kStart = "{\n  \"checksum\": \"";
constexpr const char* kFormat = "translution checkpoint";
constexpr int64_t kVersion = 1;
constexpr int kDepth = 64;

nlohmann::ordered_json to_json(const FileRecord& file) {
  return {{"bytes", file.bytes}, {"xxh3_128", file.checksum}};
}

const Json& member(const Json& json, const char* key) {
  ensure(json.is_object() && json.contains(key), "has no entry ", key);
  return json[key];
}

int64_t parse_count(const Json& json, const char* key) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const Json& value = member(json, key);
  ensure(value.is_number_unsigned() && value.get<uint64_t>() <= kMost, key,
         ": expected a whole number from 0 to 2^63-1");
  return value.get<int64_t>();
}

FileRecord parse_file(const Json& files, const char* name) {
  const Json& record = member(files, name);
  const int64_t bytes = parse_count(record, "bytes");
  const Json& sum = member(record, "xxh3_128");
  ensure(sum.is_string(), name, ": expected a string xxh3_128");
  const auto& digits = sum.get_ref<const std::string&>();
  ensure(digits.size() == Checksum::kDigits &&
             digits.find_first_not_of("0123456789abcdef") == std::string::npos,
         name, ": expected 32 hexadecimal digits as xxh3_128, got ", in_quotes(digits));
  return {bytes, digits};
}

void check_format(const Json& json) {
  ensure(member(json, "format") == kFormat, "is not a manifest of a checkpoint");
  const int64_t version = parse_count(json, "version");
  ensure(version == kVersion, "expected format version ", kVersion, ", got ", version,
         "; use the program that wrote it");
}

std::string dump(const Manifest& manifest) {
  const nlohmann::ordered_json json = {
      {"format", kFormat},
      {"version", kVersion},
      {"step", manifest.step},
      {"best", manifest.best},
      {"files",
       {{"model.safetensors", to_json(manifest.model)},
        {"optimizer.safetensors", to_json(manifest.optimizer)}}},
      {"state", manifest.state},
  };
  try {
    return json.dump(2);
  } catch (const Json::exception&) {
    throw std::invalid_argument("manifest: expected text in UTF-8 in the state");
  }
}

}  // namespace

std::string seal_manifest(std::string_view rest) { return join(kStart, checksum_of(rest), rest); }

std::string format_manifest(const Manifest& manifest) {
  require(manifest.step >= 0, "manifest: expected a step of at least 0, got ", manifest.step);
  const std::string text = seal_manifest("\"," + dump(manifest).substr(1) + "\n");
  require(parse_manifest(text).state == manifest.state,
          "manifest: expected finite numbers in the state");
  return text;
}

Manifest parse_manifest(std::string_view text) {
  const size_t rest = kStart.size() + Checksum::kDigits;
  ensure(text.size() >= rest && text.substr(0, kStart.size()) == kStart,
         "is damaged: it does not begin with a checksum");
  const auto expected = text.substr(kStart.size(), Checksum::kDigits);
  const auto found = checksum_of(text.substr(rest));
  ensure(expected == found, "is damaged: its checksum is ", found, ", the file says ",
         in_quotes(expected));
  check_strict_json(text, kDepth);
  const Json json = Json::parse(text);
  check_format(json);
  const Json& files = member(json, "files");
  ensure(member(json, "best").is_boolean(), "best: expected true or false");
  return {parse_count(json, "step"), json["best"].get<bool>(),
          parse_file(files, "model.safetensors"), parse_file(files, "optimizer.safetensors"),
          member(json, "state")};
}

}  // namespace translution
