#include "translution/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/io/strict_json.h"

namespace translution {

using namespace detail;

namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxHeader = 100'000'000;
constexpr size_t kMaxDimensions = 64;  // LibTorch's limit in most operations
constexpr int kDepth = 3;              // the header, a tensor, its shape
constexpr const char* kMetadata = "__metadata__";

int64_t parse_count(const Json& json, const char* what) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  ensure(json.is_number_unsigned() && json.get<uint64_t>() <= kMax, what,
         ": expected a whole number from 0 to 2^63-1, got ", in_quotes(json.dump()));
  return json.get<int64_t>();
}

std::vector<int64_t> parse_counts(const Json& fields, const char* what) {
  ensure(fields.contains(what) && fields[what].is_array(), "expected an array ", what);
  const Json& json = fields[what];
  ensure(json.size() <= kMaxDimensions, what, ": expected at most ", kMaxDimensions,
         " numbers, got ", json.size());
  std::vector<int64_t> counts;
  for (const auto& count : json) counts.push_back(parse_count(count, what));
  return counts;
}

SafetensorsType parse_dtype(const Json& fields) {
  ensure(fields.contains("dtype") && fields["dtype"].is_string(), "expected a string dtype");
  const auto& name = fields["dtype"].get_ref<const std::string&>();
  for (const auto& entry : kDtypes)
    if (name == entry.name) return entry.value;
  throw std::runtime_error(join("dtype ", in_quotes(name), " is not supported"));
}

// Size of a tensor in bytes. The overflow check counts a zero dimension as one, because strides are
// computed that way.
int64_t count_bytes(const SafetensorsEntry& entry) {
  int64_t bytes = byte_size(entry.dtype);
  bool empty = false, fits = true;
  for (const int64_t side : entry.shape) {
    empty = empty || side == 0;
    fits = fits && !__builtin_mul_overflow(bytes, std::max<int64_t>(side, 1), &bytes);
  }
  ensure(fits, "shape ", times(entry.shape), " has more than 2^63-1 bytes");
  return empty ? 0 : bytes;
}

SafetensorsEntry parse_entry(const std::string& name, const Json& fields) {
  ensure(fields.is_object() && fields.size() == 3, "expected dtype, shape and data_offsets");
  SafetensorsEntry entry{name, parse_dtype(fields), parse_counts(fields, "shape"), 0, 0};
  const auto offsets = parse_counts(fields, "data_offsets");
  ensure(offsets.size() == 2 && offsets[0] <= offsets[1],
         "data_offsets: expected [begin, end] with begin <= end, got ", in_quotes(times(offsets)));
  entry.begin = offsets[0];
  entry.end = offsets[1];
  const int64_t bytes = count_bytes(entry);
  ensure(bytes == entry.end - entry.begin, "shape ", in_quotes(times(entry.shape)), " takes ",
         bytes, " bytes, data_offsets give ", entry.end - entry.begin);
  return entry;
}

SafetensorsMetadata parse_metadata(const Json& json) {
  ensure(json.is_object(), kMetadata, ": expected an object");
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : json.items()) {
    ensure(value.is_string(), kMetadata, ": expected a string for ", in_quotes(key));
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// Sorts by offset, and throws for gaps, overlaps, and bytes that belong to no tensor.
void order_entries(std::vector<SafetensorsEntry>& entries, int64_t data_bytes) {
  const auto range = [](const SafetensorsEntry& e) { return std::make_pair(e.begin, e.end); };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const auto& a, const auto& b) { return range(a) < range(b); });
  int64_t end = 0;
  for (const auto& entry : entries) {
    ensure(entry.begin == end, "tensor ", in_quotes(entry.name), " begins at byte ", entry.begin,
           ", the previous tensor ends at ", end);
    end = entry.end;
  }
  ensure(end == data_bytes, "the tensors end at byte ", end, ", the file has ", data_bytes);
}

Json to_json(const SafetensorsEntry& entry) {
  return {{"dtype", name_of(kDtypes, entry.dtype)},
          {"shape", entry.shape},
          {"data_offsets", {entry.begin, entry.end}}};
}

}  // namespace

int64_t byte_size(SafetensorsType dtype) {
  switch (dtype) {
    case SafetensorsType::f64:
    case SafetensorsType::i64:
      return 8;
    case SafetensorsType::f32:
    case SafetensorsType::i32:
      return 4;
    case SafetensorsType::f16:
    case SafetensorsType::bf16:
    case SafetensorsType::i16:
      return 2;
    default:
      return 1;
  }
}

int64_t safetensors_header_length(std::string_view start, int64_t file_size) {
  ensure(static_cast<int64_t>(start.size()) >= kLengthBytes, "has ", start.size(),
         " bytes, expected at least ", kLengthBytes, " of a safetensors file");
  uint64_t length = 0;
  for (int byte = kLengthBytes - 1; byte >= 0; --byte)
    length = length << 8 | static_cast<unsigned char>(start[byte]);
  ensure(length <= static_cast<uint64_t>(kMaxHeader), "the header has ", length,
         " bytes, expected at most ", kMaxHeader, "; this is not a safetensors file");
  ensure(static_cast<int64_t>(length) <= file_size - kLengthBytes, "the header has ", length,
         " bytes, but only ", file_size - kLengthBytes, " bytes of the file follow its length");
  return static_cast<int64_t>(length);
}

SafetensorsHeader parse_safetensors_header(std::string_view start, int64_t file_size) {
  const int64_t length = safetensors_header_length(start, file_size);
  const std::string_view text = start.substr(kLengthBytes, length);
  require(static_cast<int64_t>(text.size()) == length, "the header is incomplete");
  ensure(!text.empty() && text.front() == '{', "the header does not begin with {");
  locate_errors("the header ", [&] { check_strict_json(text, kDepth); });
  const Json json = Json::parse(text);
  SafetensorsHeader header;
  for (const auto& item : json.items()) {
    const std::string& name = item.key();
    if (name == kMetadata)
      header.metadata = parse_metadata(item.value());
    else
      header.entries.push_back(locate_errors("tensor " + in_quotes(name) + ": ",
                                             [&] { return parse_entry(name, item.value()); }));
  }
  order_entries(header.entries, file_size - kLengthBytes - length);
  return header;
}

SafetensorsHeader lay_out(std::vector<SafetensorsEntry> entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return byte_size(a.dtype) > byte_size(b.dtype);
  });
  int64_t end = 0;
  for (auto& entry : entries) {
    entry.begin = end;
    end += count_bytes(entry);
    entry.end = end;
  }
  return {std::move(entries), {}};
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[kMetadata] = header.metadata;
  for (const auto& entry : header.entries) {
    require(entry.name != kMetadata, "safetensors: the tensor name ", kMetadata, " is reserved");
    json[entry.name] = to_json(entry);
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception&) {
    throw std::invalid_argument("safetensors: expected names and metadata in UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  const auto length = static_cast<int64_t>(text.size());
  require(length <= kMaxHeader, "safetensors: the header would have ", length,
          " bytes, expected at most ", kMaxHeader);
  std::string start;
  for (int byte = 0; byte < kLengthBytes; ++byte) start += static_cast<char>(length >> 8 * byte);
  return start + text;
}

}  // namespace translution
