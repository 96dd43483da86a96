#include "translution/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace translution {

using namespace detail;

namespace {

// Beyond these, differences and powers of ten overflow a double.
constexpr double kLargest = 1e100, kSmallest = 1e-100;
constexpr double kSlack = 1e-9;  // tolerance for rounding errors, relative to a step

double power_of_ten(double exponent) { return std::pow(10.0, exponent); }

double round_step(double span, const AxisOptions& options) {
  const double min_step = span / options.most_ticks;
  const double power = power_of_ten(std::floor(std::log10(min_step)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= min_step * (1 - kSlack)) step = factor * power;
  return options.integer ? std::max(1.0, step) : step;
}

// Widens a range of equal or nearly equal values.
void widen(double& low, double& high, const AxisOptions& options) {
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low > std::max(size * 1e-9, kSmallest)) return;
  if (options.log) {
    low /= 2, high *= 2;
  } else if (options.integer) {
    const double margin =
        std::max(1.0, std::round(size * 1e-9));  // adding 1 has no effect from 2^53 on
    low -= low > 0 ? margin : 0, high += margin;
  } else if (size < kSmallest) {
    low = 0, high = 1;
  } else {
    low -= size / 10, high += size / 10;
  }
}

int decimals_for(double step) {
  return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - kSlack)));
}

std::string grouped(double integer) {
  std::string digits = fmt::format("{:.0f}", std::abs(integer));
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return (integer < 0 ? "-" : "") + digits;
}

std::string power_text(double value) {
  const bool million = value >= 1e6 && value < 1e9, thousand = value >= 1e4 && value < 1e6;
  if (million) return fmt::format("{:g}M", value / 1e6);
  return thousand ? fmt::format("{:g}k", value / 1e3) : fmt::format("{:g}", value);
}

}  // namespace

bool is_drawable(double value, bool log) {
  return std::abs(value) < kLargest && (!log || value > kSmallest);  // false for NaN
}

std::string value_text(double value) {
  if (std::isfinite(value) && std::abs(value) < 1e12 && value == std::round(value))
    return grouped(value);
  return fmt::format("{:.4g}", value);
}

Axis::Axis(double low, double high, const AxisOptions& options)
    : low_(low), high_(high), log_(options.log) {
  widen(low_, high_, options);
  if (log_)
    make_log_ticks(options);
  else
    make_linear_ticks(options);
}

void Axis::make_linear_ticks(const AxisOptions& options) {
  step_ = round_step(high_ - low_, options);
  double first = std::ceil(low_ / step_ - kSlack), last = std::floor(high_ / step_ + kSlack);
  if (options.round) {
    first = std::floor(low_ / step_ + kSlack), last = std::ceil(high_ / step_ - kSlack);
    low_ = first * step_, high_ = last * step_;
  }
  for (int64_t i = 0; i <= static_cast<int64_t>(last - first); ++i)
    ticks_.push_back((first + i) * step_);
}

// Powers of ten, and 2 and 5 times these if they are few enough.
void Axis::make_log_ticks(const AxisOptions& options) {
  const double first = std::floor(std::log10(low_) + kSlack);
  const double last = std::ceil(std::log10(high_) - kSlack);
  const bool fine = 3 * (last - first) <= 2 * options.most_ticks;
  const double stride = std::ceil((last - first) / options.most_ticks);
  std::vector<double> candidates;
  for (double power = first; power <= last + stride; power += std::max(1.0, stride))
    for (const double factor : {1.0, 2.0, 5.0})
      if (fine || factor == 1) candidates.push_back(factor * power_of_ten(power));
  // The axis ends at the ticks just outside the data.
  const auto above = [](double value) { return value * (1 + kSlack); };
  auto begin = std::upper_bound(candidates.begin(), candidates.end(), above(low_));
  if (begin != candidates.begin()) --begin;
  auto end = std::lower_bound(begin, candidates.end(), high_ / (1 + kSlack));
  if (end != candidates.end()) ++end;
  ticks_.assign(begin, end);
  low_ = ticks_.front(), high_ = ticks_.back();
}

double Axis::fraction(double value) const {
  return log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
}

std::vector<std::string> Axis::tick_texts() const {
  std::vector<std::string> texts;
  double largest = 0;
  for (const double tick : ticks_) largest = std::max(largest, std::abs(tick));
  const bool million = largest >= 1e6, thousand = largest >= 1e4 && !million;
  const double unit = million ? 1e6 : thousand ? 1e3 : 1;
  const double exponent = std::floor(std::log10(std::max(largest, kSmallest)) + kSlack);
  const bool scientific = largest >= 1e10 || largest < 1e-3;
  for (const double tick : ticks_) {
    if (std::abs(tick) < step_ / 2) {
      texts.push_back("0");
    } else if (log_) {
      texts.push_back(power_text(tick));
    } else if (scientific) {
      const double power = power_of_ten(exponent);
      texts.push_back(
          fmt::format("{:.{}f}e{}", tick / power, decimals_for(step_ / power), exponent));
    } else if (unit == 1 && step_ >= 1) {
      texts.push_back(grouped(tick));
    } else {
      texts.push_back(fmt::format("{:.{}f}{}", tick / unit, decimals_for(step_ / unit),
                                  million    ? "M"
                                  : thousand ? "k"
                                             : ""));
    }
  }
  return texts;
}

}  // namespace translution
