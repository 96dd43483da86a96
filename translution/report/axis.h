#pragma once

#include <string>
#include <vector>

namespace translution {

struct AxisOptions {
  bool log = false;      ///< logarithmic; only for values above 0
  bool integer = false;  ///< ticks are integers, as for steps
  bool round = true;     ///< widen the range to the next ticks; otherwise it ends at the data
  int most_ticks = 6;    ///< at least 3; a logarithmic axis may have twice as many
};

/// The range and the ticks of an axis. Ticks are 1, 2 or 5 times a power of ten apart.
class Axis {
 public:
  /// For values from `low` to `high`, which must be finite. Widens an empty range.
  Axis(double low, double high, const AxisOptions& options);

  /// The location of a value on the axis: 0 at the low end, 1 at the high end.
  double fraction(double value) const;
  const std::vector<double>& ticks() const { return ticks_; }
  /// One text per tick, all with the same number of digits and the same unit.
  std::vector<std::string> tick_texts() const;

 private:
  void make_linear_ticks(const AxisOptions& options);
  void make_log_ticks(const AxisOptions& options);

  double low_, high_;
  bool log_;
  double step_ = 0;  // from tick to tick; 0 on a logarithmic axis
  std::vector<double> ticks_;
};

/// True if the value can be drawn; false for finite values of 1e100 or more, too.
bool is_drawable(double value, bool log);

/// A value as text with four digits; integers in full, as "1,200".
std::string value_text(double value);

}  // namespace translution
