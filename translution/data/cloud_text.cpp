#include "translution/data/cloud_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/data/class_names.h"
#include "translution/data/text_lines.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kMaxAxes = 3;
constexpr size_t kMaxFeatures = 256;
constexpr std::pair<CloudTargets, std::string_view> kTargets[] = {
    {CloudTargets::classes, "classes"},
    {CloudTargets::numbers, "numbers"},
    {CloudTargets::none, "none"}};
constexpr const char* kTargetsLines = "'targets classes', 'targets numbers' or 'targets none'";

class CloudTextReader {
 public:
  CloudTextReader(std::string_view text, const std::string& name)
      : lines_(text, name), name_(name) {}

  CloudText read() {
    while (lines_.next_uncommented()) {
      const auto& words = lines_.words();
      if (words[0] == "cloud")
        read_cloud(words);
      else if (words[0] == "axes")
        read_axes(words);
      else if (words[0] == "targets")
        read_targets(words);
      else if (words[0] == "features")
        read_features(words);
      else
        fail("expected axes, targets, features or cloud, got ", in_quotes(words[0]));
    }
    ensure(!result_.clouds.empty(), name_, ": has no clouds; expected lines 'cloud TARGET POINTS'");
    return std::move(result_);
  }

 private:
  template <typename... Message>
  [[noreturn]] void fail(const Message&... message) const {
    refuse_file(lines_.place(), message...);
  }

  void check_first(bool seen, const char* what) const {
    if (seen) fail("a second line '", what, "'");
    if (!result_.clouds.empty()) fail("expected '", what, "' before the first cloud");
  }

  void read_axes(const std::vector<std::string_view>& words) {
    check_first(result_.axes > 0, "axes");
    const auto axes = words.size() == 2 ? word_number<int64_t>(words[1]) : std::nullopt;
    if (!axes || *axes < 1 || *axes > kMaxAxes) fail("expected 'axes 1', 'axes 2' or 'axes 3'");
    result_.axes = *axes;
  }

  void read_targets(const std::vector<std::string_view>& words) {
    check_first(knows_targets_, "targets");
    const auto* const found = std::find_if(
        std::begin(kTargets), std::end(kTargets),
        [&](const auto& targets) { return words.size() == 2 && words[1] == targets.second; });
    if (found == std::end(kTargets)) fail("expected ", kTargetsLines);
    result_.targets = found->first;
    knows_targets_ = true;
  }

  void read_features(const std::vector<std::string_view>& words) {
    check_first(!result_.features.empty(), "features");
    if (words.size() < 2 || words.size() > kMaxFeatures + 1)
      fail("expected 1 to ", kMaxFeatures, " names of features, got ", words.size() - 1);
    for (size_t w = 1; w < words.size(); ++w) {
      if (std::find(words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(w), words[w]) !=
          words.begin() + static_cast<std::ptrdiff_t>(w))
        fail("a second feature ", in_quotes(words[w]));
      result_.features.emplace_back(words[w]);
    }
  }

  void read_cloud(const std::vector<std::string_view>& words) {
    if (result_.axes == 0) fail("expected 'axes 1', 'axes 2' or 'axes 3' before the first cloud");
    if (!knows_targets_) fail("expected ", kTargetsLines, " before the first cloud");
    const bool has_target = result_.targets != CloudTargets::none;
    if (words.size() != (has_target ? 3 : 2))
      fail("expected 'cloud ", has_target ? "TARGET " : "", "POINTS'");
    if (has_target) read_target(words[1]);
    const auto count = word_number<int64_t>(words.back());
    if (!count || *count < 1) fail("expected 1 or more points, got ", in_quotes(words.back()));
    read_points(*count);
  }

  void read_target(std::string_view word) {
    if (result_.targets == CloudTargets::classes) {
      if (!is_utf8(word)) fail("the name of the class '", escape_bytes(word), "' is not UTF-8");
      result_.classes.emplace_back(word);
    } else {
      const auto number = word_number<double>(word);
      if (!number || !std::isfinite(*number))
        fail("expected a number as target, got ", in_quotes(word));
      result_.numbers.push_back(*number);
    }
  }

  void read_points(int64_t count) {
    const auto features = static_cast<int64_t>(result_.features.size());
    PointCloud cloud{result_.axes, std::max<int64_t>(1, features), {}, {}};
    const auto start = lines_.place();
    for (int64_t point = 0; point < count; ++point) {
      if (!lines_.next_uncommented())
        refuse_file(start, "expected ", count, " points, the file ends after ", point);
      const auto& words = lines_.words();
      if (words[0] == "cloud")
        fail("expected ", count, " points for the cloud of line ", start.number, ", got ", point);
      if (static_cast<int64_t>(words.size()) != result_.axes + features)
        fail("expected ", result_.axes + features, " numbers (", result_.axes, " of a position, ",
             features, " features), got ", words.size());
      for (size_t w = 0; w < words.size(); ++w)
        (static_cast<int64_t>(w) < result_.axes ? cloud.positions : cloud.features)
            .push_back(read_value(words[w]));
      if (features == 0) cloud.features.push_back(1);
    }
    result_.clouds.push_back(std::move(cloud));
  }

  float read_value(std::string_view word) const {
    const auto number = word_number<double>(word);
    if (!number || !(std::abs(*number) <= std::numeric_limits<float>::max()))
      fail("expected a number of float32, got ", in_quotes(word));
    return static_cast<float>(*number);
  }

  TextLines lines_;
  const std::string& name_;
  CloudText result_;
  bool knows_targets_ = false;
};

}  // namespace

CloudText parse_cloud_text(std::string_view text, const std::string& name) {
  return CloudTextReader(text, name).read();
}

}  // namespace translution
