#include "translution/core/settings.h"

#include <charconv>
#include <cmath>

namespace translution {
namespace {

template <typename Number>
std::optional<Number> to_number(const std::string& text) {
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

// "84x60" as 84, 60; nothing where that is not all there is.
std::optional<std::vector<int64_t>> to_numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const auto& part : split(text, 'x')) {
    const auto number = to_number<int64_t>(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

int64_t Value::number() const {
  const auto number = to_number<int64_t>(text);
  require(number.has_value(), name, " wants a whole number, got '", text, "'");
  return *number;
}

int64_t Value::number(int64_t least, int64_t most) const {
  const int64_t value = number();
  require(least <= value && value <= most, name, " wants ", least, " to ", most, ", got ", value);
  return value;
}

double Value::real(double least, double most) const {
  const auto number = to_number<double>(text);
  require(number && std::isfinite(*number), name, " wants a number, got '", text, "'");
  require(least <= *number && *number <= most, name, " wants ", least, " to ", most, ", got ",
          text);
  return *number;
}

bool Value::on() const { return parse_name((name + " value").c_str(), kSwitch, text); }

std::vector<int64_t> Value::sides() const {
  const auto sides = to_numbers(text);
  require(sides && sides->size() <= 2, name, " wants pixels such as 84 or 84x60, got '", text, "'");
  return {sides->front(), sides->back()};
}

std::vector<int64_t> Value::grid() const {
  const auto sides = to_numbers(text);
  require(sides.has_value(), name, " wants sides such as 160, 7x7 or 4x7x7, got '", text, "'");
  return *sides;
}

std::vector<std::string> Value::words() const { return split(text, ','); }

std::string number_text(double number) {
  char text[32];
  const auto result = std::to_chars(text, text + sizeof text, number);
  return {text, result.ptr};
}

}  // namespace translution
