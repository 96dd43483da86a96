#pragma once

#include <string>
#include <vector>

namespace translution {

struct AxisOptions {
  bool log = false;    ///< only for values above 0
  bool whole = false;  ///< ticks are whole numbers, as for steps
  bool round = true;   ///< the range is widened to the next ticks; else the data reaches its ends
  int most_ticks = 6;  ///< at least 3; by powers of ten there may be twice as many
};

/// The range of an axis and where its ticks are: 1, 2 or 5 times a power of ten apart.
class Axis {
 public:
  /// For values from `low` to `high`, which have to be finite; equal ones get room around them.
  Axis(double low, double high, const AxisOptions& options);

  /// Where a value lies: 0 at the low end, 1 at the high end.
  double place(double value) const;
  const std::vector<double>& ticks() const { return ticks_; }
  /// One text per tick, all with the same number of digits and the same unit.
  std::vector<std::string> tick_texts() const;

 private:
  void make_linear_ticks(const AxisOptions& options);
  void make_log_ticks(const AxisOptions& options);

  double low_, high_;
  bool log_;
  double step_ = 0;  // from tick to tick, where it is always the same
  std::vector<double> ticks_;
};

/// Can this value be drawn at all? Also false for finite ones beyond any sensible scale.
bool is_drawable(double value, bool log);

/// A value for reading: four digits; "1,200" for whole numbers.
std::string value_text(double value);

}  // namespace translution
