#include "translution/core/settings.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace translution {

using namespace detail;

namespace {

template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

// "84x60" gives 84, 60; nothing if the text has another form.
std::optional<std::vector<int64_t>> parse_sides(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const auto& part : split(text, 'x')) {
    const auto number = parse_number<int64_t>(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

int64_t SettingValue::number() const {
  const auto number = parse_number<int64_t>(text);
  require(number.has_value(), name, ": expected a whole number, got '", text, "'");
  return *number;
}

int64_t SettingValue::number(int64_t least, int64_t most) const {
  const int64_t value = number();
  require(least <= value && value <= most, name, ": expected ", least, " to ", most, ", got ",
          value);
  return value;
}

double SettingValue::real(double least, double most) const {
  const auto number = parse_number<double>(text);
  require(number && std::isfinite(*number), name, ": expected a number, got '", text, "'");
  require(least <= *number && *number <= most, name, ": expected ", least, " to ", most, ", got ",
          text);
  return *number;
}

bool SettingValue::on() const { return parse_name((name + " value").c_str(), kSwitch, text); }

std::vector<int64_t> SettingValue::sides() const {
  const auto sides = parse_sides(text);
  require(sides && sides->size() <= 2, name, ": expected pixels such as 84 or 84x60, got '", text,
          "'");
  return {sides->front(), sides->back()};
}

std::vector<int64_t> SettingValue::grid() const {
  const auto sides = parse_sides(text);
  require(sides.has_value(), name, ": expected sides such as 160, 7x7 or 4x7x7, got '", text, "'");
  return *sides;
}

std::vector<std::string> SettingValue::words() const { return split(text, ','); }

void SettingValue::check_listed(const std::vector<std::string>& names, size_t listed) const {
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(listed);
  if (std::find(end, names.end(), text) == names.end()) return;
  throw std::invalid_argument(join("unknown ", name.substr(name.find_first_not_of('-')), " '", text,
                                   "'", name_hint(text, {names.begin(), end})));
}

std::string choices_text(const std::vector<std::string>& names) {
  constexpr size_t kMaxShown = 7;
  if (names.size() > kMaxShown) return "NAME";
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : "|") + name;
  return text;
}

std::string number_text(double number) {
  char text[32];
  const auto result = std::to_chars(text, text + sizeof text, number);
  return {text, result.ptr};
}

namespace fields {

Kind<int64_t> whole() {
  using Limits = std::numeric_limits<int64_t>;
  return whole(Limits::min(), Limits::max());
}

Kind<double> real(double least, double most) {
  return {FieldType::real, "X", [=](const SettingValue& value) { return value.real(least, most); },
          number_text};
}

Kind<double> real() {
  using Limits = std::numeric_limits<double>;
  return real(Limits::lowest(), Limits::max());
}

Kind<bool> on_off() {
  return {FieldType::on_off, choices_text(kSwitch),
          [](const SettingValue& value) { return value.on(); },
          [](bool on) { return std::string(name_of(kSwitch, on)); }};
}

Kind<Roles> roles() {
  return {FieldType::word, "qkv",
          [](const SettingValue& value) { return Roles::parse(value.text); },
          [](const Roles& roles) { return roles.str(); }};
}

Kind<std::vector<int64_t>> sides() {
  return {FieldType::sides, "N|HxW", [](const SettingValue& value) { return value.sides(); },
          times<std::vector<int64_t>>};
}

Kind<std::vector<int64_t>> grid() {
  return {FieldType::sides, "N|NxN|NxNxN",
          [](const SettingValue& value) {
            return value.text.empty() ? std::vector<int64_t>() : value.grid();
          },
          times<std::vector<int64_t>>};
}

Kind<std::string> any_text(const char* placeholder) {
  return {FieldType::word, placeholder, [](const SettingValue& value) { return value.text; },
          [](const std::string& text) { return text; }};
}

}  // namespace fields

}  // namespace translution
