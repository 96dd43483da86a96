#include "translution/data/ply.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/data/text_lines.h"

namespace translution {

using namespace detail;

namespace {

constexpr size_t kMaxElements = 64, kMaxProperties = 256;
constexpr int64_t kMaxCount = int64_t{1} << 32;

struct PlyTypeName {
  const char* name;
  PlyType type;
};
constexpr PlyTypeName kPlyTypes[] = {
    {"char", PlyType::int8},      {"int8", PlyType::int8},       {"uchar", PlyType::uint8},
    {"uint8", PlyType::uint8},    {"short", PlyType::int16},     {"int16", PlyType::int16},
    {"ushort", PlyType::uint16},  {"uint16", PlyType::uint16},   {"int", PlyType::int32},
    {"int32", PlyType::int32},    {"uint", PlyType::uint32},     {"uint32", PlyType::uint32},
    {"float", PlyType::float32},  {"float32", PlyType::float32}, {"double", PlyType::float64},
    {"float64", PlyType::float64}};

bool is_real(PlyType type) { return type == PlyType::float32 || type == PlyType::float64; }

size_t bytes_of(PlyType type) {
  switch (type) {
    case PlyType::int8:
    case PlyType::uint8:
      return 1;
    case PlyType::int16:
    case PlyType::uint16:
      return 2;
    case PlyType::float64:
      return 8;
    default:
      return 4;
  }
}

// Least and greatest value of a whole type.
std::pair<double, double> limits_of(PlyType type) {
  const int bits = 8 * static_cast<int>(bytes_of(type));
  const bool sign = type == PlyType::int8 || type == PlyType::int16 || type == PlyType::int32;
  return {sign ? -std::ldexp(1, bits - 1) : 0, std::ldexp(1, sign ? bits - 1 : bits) - 1};
}

// -------------------------------------------------------------------------------- the header

class HeaderReader {
 public:
  HeaderReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  PlyHeader read() {
    const std::string_view start = bytes_.substr(0, 5);
    ensure(start == "ply\r\n" || start.substr(0, 4) == "ply\n", name_,
           ": is not a PLY file: expected a first line 'ply'");
    next_line();
    while (read_line(split_words(next_line()))) {
    }
    header_.bytes = at_;
    check_end();
    return std::move(header_);
  }

 private:
  template <typename... Message>
  void expect(bool ok, const Message&... message) const {
    ensure(ok, name_, ":", header_.lines, ": ", message...);
  }

  std::string_view next_line() {
    const size_t end = bytes_.substr(0, kMaxPlyHeader).find('\n', at_);
    ensure(end != std::string_view::npos, name_, ": the PLY header has no line 'end_header'",
           bytes_.size() > kMaxPlyHeader ? join(" within ", kMaxPlyHeader, " bytes") : "",
           "; is the file truncated?");
    auto line = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    ++header_.lines;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
  }

  // False after the last line.
  bool read_line(const std::vector<std::string_view>& words) {
    const std::string_view first = words.empty() ? std::string_view() : words[0];
    if (first == "comment" || first == "obj_info") return true;
    if (first == "end_header") return false;
    if (first == "format")
      read_format(words);
    else if (first == "element")
      read_element(words);
    else if (first == "property")
      read_property(words);
    else
      expect(false, "expected format, element, property, comment or end_header, got ",
             in_quotes(first));
    return true;
  }

  void read_format(const std::vector<std::string_view>& words) {
    constexpr const char* kFormats[] = {"ascii", "binary_little_endian", "binary_big_endian"};
    expect(!has_format_, "a second line 'format'");
    const auto* const found = words.size() == 3 && words[2] == "1.0"
                                  ? std::find(std::begin(kFormats), std::end(kFormats), words[1])
                                  : std::end(kFormats);
    expect(found != std::end(kFormats),
           "expected 'format ascii 1.0', 'format binary_little_endian 1.0' or "
           "'format binary_big_endian 1.0'");
    header_.format = static_cast<PlyFormat>(found - std::begin(kFormats));
    has_format_ = true;
  }

  void read_element(const std::vector<std::string_view>& words) {
    expect(words.size() == 3, "expected 'element NAME COUNT'");
    const auto count = word_number<int64_t>(words[2]);
    expect(count && 0 <= *count && *count <= kMaxCount, "expected a count from 0 to ", kMaxCount,
           ", got ", in_quotes(words[2]));
    for (const auto& element : header_.elements)
      expect(element.name != words[1], "a second element ", in_quotes(words[1]));
    expect(header_.elements.size() < kMaxElements, "expected at most ", kMaxElements, " elements");
    header_.elements.push_back({std::string(words[1]), *count, {}});
  }

  PlyType read_type(std::string_view word) const {
    for (const auto& [name, type] : kPlyTypes)
      if (word == name) return type;
    expect(false, "unknown type ", in_quotes(word),
           "; expected char, uchar, short, ushort, int, uint, float or double");
    return PlyType::int8;
  }

  void read_property(const std::vector<std::string_view>& words) {
    expect(!header_.elements.empty(), "a property before the first element");
    const bool is_list = words.size() == 5 && words[1] == "list";
    expect(is_list || (words.size() == 3 && words[1] != "list"),
           "expected 'property TYPE NAME' or 'property list TYPE TYPE NAME'");
    PlyProperty property{std::string(words.back()), read_type(words[is_list ? 3 : 1]), is_list};
    if (is_list) property.length = read_type(words[2]);
    expect(!is_list || !is_real(property.length), "expected a whole type for the length of a list");
    auto& properties = header_.elements.back().properties;
    for (const auto& other : properties)
      expect(other.name != property.name, "a second property ", in_quotes(property.name));
    expect(properties.size() < kMaxProperties, "expected at most ", kMaxProperties, " properties");
    properties.push_back(std::move(property));
  }

  void check_end() const {
    expect(has_format_, "the PLY header has no line 'format'");
    bool found = false;
    for (const auto& element : header_.elements) {
      ensure(element.count == 0 || !element.properties.empty(), name_, ": element ",
             in_quotes(element.name), " has no properties");
      found |= element.name == "vertex";
    }
    ensure(found, name_, ": has no element 'vertex'");
    const auto& properties = header_.vertex().properties;
    for (const char* axis : {"x", "y", "z"})
      ensure(std::any_of(properties.begin(), properties.end(),
                         [&](const auto& p) { return p.name == axis && !p.is_list; }),
             name_, ": the vertices have no property '", axis, "'");
    ensure(header_.vertex().count > 0, name_, ": has no vertices; expected at least one");
  }

  const std::string_view bytes_;
  const std::string& name_;
  PlyHeader header_;
  size_t at_ = 0;
  bool has_format_ = false;
};

// -------------------------------------------------------------------------------- the values

// The bytes behind the header, value by value.
class BinaryBody {
 public:
  BinaryBody(std::string_view bytes, const PlyHeader& header, const std::string& name)
      : bytes_(bytes),
        at_(header.bytes),
        big_(header.format == PlyFormat::big_endian),
        name_(name) {}

  FilePlace place() const { return {name_, ": byte ", static_cast<int64_t>(at_)}; }
  size_t left() const { return bytes_.size() - at_; }
  void begin_row() {}
  void end_row() {}

  double next(PlyType type) {
    const size_t count = bytes_of(type);
    if (count > left()) refuse_file(place(), "the file ends in the values; is it truncated?");
    uint64_t bits = 0;
    for (size_t b = 0; b < count; ++b) {
      const auto byte = static_cast<uint8_t>(bytes_[at_ + (big_ ? b : count - 1 - b)]);
      bits = bits << 8 | byte;
    }
    at_ += count;
    return value_of_bits(type, bits);
  }

  void skip(PlyType type, int64_t count) {
    if (count > static_cast<int64_t>(left() / bytes_of(type)))
      refuse_file(place(), "a list of ", count, " values goes beyond the end of the file");
    at_ += static_cast<size_t>(count) * bytes_of(type);
  }

  void check_end() const {
    if (left() > 0)
      refuse_file(place(), "expected the end of the file, got ", left(),
                  left() == 1 ? " byte" : " bytes", " more than the header declares");
  }

 private:
  static double value_of_bits(PlyType type, uint64_t bits) {
    switch (type) {
      case PlyType::int8:
        return static_cast<int8_t>(bits);
      case PlyType::int16:
        return static_cast<int16_t>(bits);
      case PlyType::int32:
        return static_cast<int32_t>(bits);
      case PlyType::float32: {
        const auto low = static_cast<uint32_t>(bits);
        float value = 0;
        std::memcpy(&value, &low, sizeof value);
        return value;
      }
      case PlyType::float64: {
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);
        return value;
      }
      default:
        return static_cast<double>(bits);
    }
  }

  const std::string_view bytes_;
  size_t at_;
  const bool big_;
  const std::string& name_;
};

// The lines behind the header: one per vertex, face, …
class AsciiBody {
 public:
  AsciiBody(std::string_view bytes, const PlyHeader& header, const std::string& name)
      : lines_(bytes.substr(header.bytes), name, header.lines), name_(name) {}

  FilePlace place() const { return lines_.place(); }
  size_t left() const { return lines_.left(); }

  void begin_row() {
    ensure(lines_.next(), name_,
           ": ends before all values that its header declares; is it truncated?");
    word_ = 0;
  }
  void end_row() const {
    const size_t words = lines_.words().size();
    if (word_ != words)
      refuse_file(place(), "expected ", word_, word_ == 1 ? " value" : " values", ", got ", words);
  }

  double next(PlyType type) {
    const auto& words = lines_.words();
    if (word_ == words.size())
      refuse_file(place(), "expected more than ", word_, word_ == 1 ? " value" : " values");
    const auto word = words[word_++];
    const auto number = word_number<double>(word);
    if (!number) refuse_file(place(), "expected a number, got ", in_quotes(word));
    if (is_real(type)) return *number;
    const auto [least, most] = limits_of(type);
    if (*number != std::floor(*number) || *number < least || *number > most)
      refuse_file(place(), "expected a whole number from ", static_cast<int64_t>(least), " to ",
                  static_cast<int64_t>(most), ", got ", in_quotes(word));
    return *number;
  }

  void skip(PlyType type, int64_t count) {
    const auto left = static_cast<int64_t>(lines_.words().size() - word_);
    if (count > left) refuse_file(place(), "a list of ", count, " values has ", left);
    for (int64_t i = 0; i < count; ++i) next(type);
  }

  void check_end() {
    if (lines_.next())
      refuse_file(place(), "expected the end of the file, got more lines than its header declares");
  }

 private:
  TextLines lines_;
  const std::string& name_;
  size_t word_ = 0;
};

template <typename Body>
void skip_property(Body& body, const PlyProperty& property) {
  if (!property.is_list) {
    body.next(property.type);
    return;
  }
  const auto count = static_cast<int64_t>(body.next(property.length));
  if (count < 0) refuse_file(body.place(), "expected a list of 0 or more values, got ", count);
  body.skip(property.type, count);
}

template <typename Body>
void skip_element(Body& body, const PlyElement& element) {
  for (int64_t row = 0; row < element.count; ++row) {
    body.begin_row();
    for (const auto& property : element.properties) skip_property(body, property);
    body.end_row();
  }
}

constexpr int64_t kSkipped = -1;

// The column of x, y, z and then the features that each property is; kSkipped for others.
std::vector<int64_t> columns_of(const PlyElement& vertex, const std::vector<std::string>& features,
                                const std::string& name) {
  std::vector<std::string> wanted = {"x", "y", "z"};
  wanted.insert(wanted.end(), features.begin(), features.end());
  std::vector<int64_t> columns;
  for (const auto& property : vertex.properties) {
    const auto found = std::find(wanted.begin(), wanted.end(), property.name);
    columns.push_back(property.is_list || found == wanted.end() ? kSkipped
                                                                : found - wanted.begin());
  }
  for (size_t column = 0; column < wanted.size(); ++column)
    ensure(std::find(columns.begin(), columns.end(), static_cast<int64_t>(column)) != columns.end(),
           name, ": the vertices have no property ", in_quotes(wanted[column]));
  return columns;
}

// Appends x, y, z and the features of each vertex.
template <typename Body>
void read_vertices(Body& body, const PlyElement& vertex, const std::vector<int64_t>& columns,
                   size_t width, std::vector<double>& values) {
  std::vector<double> row(width);
  for (int64_t v = 0; v < vertex.count; ++v) {
    body.begin_row();
    for (size_t p = 0; p < columns.size(); ++p) {
      const auto& property = vertex.properties[p];
      if (columns[p] == kSkipped) {
        skip_property(body, property);
        continue;
      }
      const double value = body.next(property.type);
      if (!std::isfinite(value))
        refuse_file(body.place(), "expected a finite ", property.name, ", got ", value);
      const bool colour = columns[p] >= 3 && property.type == PlyType::uint8;
      row[static_cast<size_t>(columns[p])] = colour ? value / 255 : value;
    }
    body.end_row();
    values.insert(values.end(), row.begin(), row.end());
  }
}

template <typename Body>
std::vector<double> read_values(Body body, const PlyHeader& header, const std::string& name,
                                const std::vector<std::string>& features) {
  std::vector<double> values;
  for (const auto& element : header.elements) {
    // A row has at least a byte; this refuses false counts before memory is used.
    ensure(element.count <= static_cast<int64_t>(body.left()), name, ": element ",
           in_quotes(element.name), " has ", element.count, " rows, but the file has only ",
           body.left(), " bytes left; is it truncated?");
    if (&element == &header.vertex())
      read_vertices(body, element, columns_of(element, features, name), 3 + features.size(),
                    values);
    else
      skip_element(body, element);
  }
  body.check_end();
  return values;
}

float checked_float(double value, const std::string& name) {
  ensure(std::abs(value) <= std::numeric_limits<float>::max(), name, ": the value ", value,
         " is too large for float32");
  return static_cast<float>(value);
}

// Positions become relative to the middle of the bounding box.
PointCloud cloud_of(const std::vector<double>& values, size_t width, const std::string& name) {
  const int64_t channels = static_cast<int64_t>(width) - 3;
  PointCloud cloud{3, std::max<int64_t>(1, channels), {}, {}};
  std::array<double, 3> middle{};
  for (size_t axis = 0; axis < 3; ++axis) {
    double low = values[axis], high = values[axis];
    for (size_t v = axis; v < values.size(); v += width)
      low = std::min(low, values[v]), high = std::max(high, values[v]);
    middle[axis] = low + 0.5 * (high - low);
  }
  for (size_t v = 0; v < values.size(); v += width) {
    for (size_t axis = 0; axis < 3; ++axis)
      cloud.positions.push_back(checked_float(values[v + axis] - middle[axis], name));
    for (size_t c = 3; c < width; ++c) cloud.features.push_back(checked_float(values[v + c], name));
    if (channels == 0) cloud.features.push_back(1);
  }
  return cloud;
}

}  // namespace

const PlyElement& PlyHeader::vertex() const {
  return *std::find_if(elements.begin(), elements.end(),
                       [](const auto& element) { return element.name == "vertex"; });
}

std::vector<std::string> PlyHeader::features() const {
  std::vector<std::string> names;
  for (const auto& property : vertex().properties)
    if (!property.is_list && property.name != "x" && property.name != "y" && property.name != "z")
      names.push_back(property.name);
  return names;
}

PlyHeader parse_ply_header(std::string_view bytes, const std::string& name) {
  return HeaderReader(bytes, name).read();
}

PointCloud parse_ply(std::string_view bytes, const std::string& name,
                     const std::vector<std::string>& features) {
  const auto header = parse_ply_header(bytes, name);
  const auto values = header.format == PlyFormat::ascii
                          ? read_values(AsciiBody(bytes, header, name), header, name, features)
                          : read_values(BinaryBody(bytes, header, name), header, name, features);
  return cloud_of(values, 3 + features.size(), name);
}

}  // namespace translution
