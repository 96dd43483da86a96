#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "translution/core/error.h"
#include "translution/report/axis.h"
#include "translution/report/heatmap.h"
#include "translution/report/html.h"
#include "translution/report/report_parts.h"
#include "translution/report/svg_chart.h"

namespace translution {

using namespace detail;

namespace {

constexpr size_t kMostClasses = 40;     // of a readable matrix
constexpr size_t kMostTexts = 20;       // classes of a matrix with counts in its cells
constexpr size_t kMostConfusions = 10;  // rows of the table of confusions

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// "Confusion on dynamic"
std::string title_on(const char* what, const std::string& set) {
  return set.empty() ? what : join(what, " on ", set);
}

// -------------------------------------------------------------------------------- confusion

int64_t row_sum(const ReportConfusion& confusion, size_t truth) {
  const size_t n = confusion.classes.size();
  int64_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += confusion.counts[truth * n + i];
  return sum;
}

void check(const ReportConfusion& confusion) {
  const size_t n = confusion.classes.size();
  require(n >= 1 && n <= 1u << 15 && confusion.counts.size() == n * n,
          "confusion matrix: expected a count for each pair of ", n, " classes, got ",
          confusion.counts.size());
  for (const int64_t count : confusion.counts)
    require(count >= 0 && count <= int64_t{1} << 40,
            "confusion matrix: expected counts from 0 to 2^40, got ", count);
}

std::string accuracy_text(const ReportConfusion& confusion) {
  const size_t n = confusion.classes.size();
  int64_t correct = 0, all = 0;
  for (size_t i = 0; i < n; ++i) {
    correct += confusion.counts[i * n + i];
    all += row_sum(confusion, i);
  }
  if (all == 0) return "No samples.";
  return fmt::format("{} of {} correct ({}).", value_text(correct), value_text(all),
                     percent(static_cast<double>(correct) / all));
}

std::string confusion_matrix(const ReportConfusion& confusion) {
  const size_t n = confusion.classes.size();
  Heatmap map;
  map.rows = map.cols = n;
  map.colours = Heatmap::Colours::share;
  map.cell = n <= 12 ? 40 : n <= kMostTexts ? 32 : 16;
  map.row_names = map.col_names = confusion.classes;
  map.row_title = "true class", map.col_title = "predicted class";
  for (size_t i = 0; i < n * n; ++i) {
    const int64_t count = confusion.counts[i], sum = row_sum(confusion, i / n);
    const double share = sum > 0 ? static_cast<double>(count) / sum : 0;
    map.values.push_back(std::sqrt(share));
    map.tooltips.push_back(fmt::format("{} predicted as {}: {} of {} ({})",
                                       confusion.classes[i / n], confusion.classes[i % n],
                                       value_text(count), value_text(sum), percent(share)));
    if (n <= kMostTexts) map.texts.push_back(count > 0 ? value_text(count) : "");
  }
  return svg_heatmap(map);
}

std::string confusion_table(const ReportConfusion& confusion) {
  const size_t n = confusion.classes.size();
  std::vector<size_t> order;
  for (size_t i = 0; i < n * n; ++i)
    if (i / n != i % n && confusion.counts[i] > 0) order.push_back(i);
  const size_t shown = std::min(order.size(), kMostConfusions);
  std::partial_sort(order.begin(), order.begin() + shown, order.end(), [&](size_t a, size_t b) {
    return std::make_pair(-confusion.counts[a], a) < std::make_pair(-confusion.counts[b], b);
  });
  if (shown == 0) return "";
  HtmlTable table{{"true class", "predicted class", "count", "share"}, {}};
  for (size_t i = 0; i < shown; ++i)
    table.rows.push_back({confusion.classes[order[i] / n], confusion.classes[order[i] % n],
                          value_text(confusion.counts[order[i]]),
                          percent(static_cast<double>(confusion.counts[order[i]]) /
                                  row_sum(confusion, order[i] / n))});
  return "<div>\n<h3>Most frequent confusions</h3>\n" + html_table(table) + "</div>\n";
}

std::string confusion_part(const ReportConfusion& confusion, const std::string& set) {
  check(confusion);
  const bool fits = confusion.classes.size() <= kMostClasses;
  const std::string matrix = fits ? confusion_matrix(confusion) : "";
  return html_figure({"card wide", title_on("Confusion", set),
                      "<div class=\"sides\">\n" + matrix + confusion_table(confusion) + "</div>\n",
                      accuracy_text(confusion) +
                          (fits ? " Shade: square root of the share of the true class, so that "
                                  "rare confusions show."
                                : "")});
}

// ------------------------------------------------------------------- samples and attention

std::string samples_part(const std::vector<ReportSample>& samples, const std::string& set) {
  std::string tiles;
  int64_t correct = 0;
  for (const auto& sample : samples) {
    const bool is_correct = sample.truth == sample.predicted;
    correct += is_correct;
    tiles += fmt::format(
        "<div class=\"sample {}\"><img alt=\"{}\" src=\"{}\"><span class=\"verdict\">{} {}"
        "<span class=\"share\">{:.0f} %</span></span>{}</div>\n",
        is_correct ? "right" : "wrong", html_escape(sample.truth), image_uri(sample.image),
        is_correct ? "✓" : "✗", html_escape(sample.predicted), 100 * sample.probability,
        is_correct ? "" : "<span class=\"truth\">is " + html_escape(sample.truth) + "</span>");
  }
  if (tiles.empty()) return "";
  return html_figure(
      {"card wide", title_on("Samples", set), "<div class=\"samples\">\n" + tiles + "</div>\n",
       fmt::format("{} of these {} are correct. Below each image: the predicted class "
                   "and its probability; the true class if it differs.",
                   correct, samples.size())});
}

std::string attention_part(const std::vector<ReportAttention>& maps, const std::string& set,
                           const std::string& id) {
  std::string figures;
  for (size_t i = 0; i < maps.size(); ++i)
    figures += html_figure(
        {"part", maps[i].caption, svg_attention(maps[i].picture, fmt::format("{}-{}", id, i)), ""});
  if (figures.empty()) return "";
  return html_figure({"card wide", title_on("Attention maps", set), figures,
                      "Left: the image or the points, with a frame around the query. Each map is "
                      "scaled to its own largest weight."});
}

// ------------------------------------------------------------------------------------ norms

// Offsets from -middle to middle: only the ends and the middle are named.
std::vector<std::string> offset_names(int64_t count) {
  std::vector<std::string> names(count);
  names.front() = fmt::format("{}", -(count / 2));
  names.back() = fmt::format("{:+}", count - 1 - count / 2);
  names[count / 2] = "0";
  return names;
}

std::string norm_grid(const ReportNorms& norms) {
  Heatmap map;
  map.rows = norms.rows, map.cols = norms.cols;
  map.values = norms.values;
  map.cell = std::clamp<int>(130 / std::max(norms.rows, norms.cols), 3, 20);
  map.row_names = offset_names(norms.rows), map.col_names = offset_names(norms.cols);
  map.marked = norms.rows / 2 * norms.cols + norms.cols / 2;
  for (int64_t i = 0; i < norms.rows * norms.cols; ++i)
    map.tooltips.push_back(fmt::format("down {:+}, right {:+}: {}", i / norms.cols - norms.rows / 2,
                                       i % norms.cols - norms.cols / 2,
                                       value_text(norms.values[i])));
  return svg_heatmap(map);
}

std::string norm_line(const ReportNorms& norms) {
  LineChart chart;
  chart.x_name = "offset";
  chart.whole_x = true;
  chart.width = 330, chart.height = 180;
  chart.series.push_back({norms.table, 0, Stroke::solid, {}});
  for (int64_t i = 0; i < norms.cols; ++i)
    chart.series[0].points.push_back({static_cast<double>(i - norms.cols / 2), norms.values[i]});
  return svg_line_chart(chart);
}

std::string norm_figure(const ReportNorms& norms) {
  check_grid("norms", norms.rows, norms.cols, norms.values.size());
  std::string others;
  for (const auto& [name, value] : norms.others) others += fmt::format("{} {:.3g}\n", name, value);
  return html_figure({norms.rows == 1 ? "tile line-tile" : "tile", norms.table,
                      norms.rows == 1 ? norm_line(norms) : norm_grid(norms), others});
}

}  // namespace

std::string report_evaluation(const ReportEvaluation& evaluation, const std::string& id) {
  const auto& set = evaluation.set;
  return (evaluation.confusion ? confusion_part(*evaluation.confusion, set) : "") +
         samples_part(evaluation.samples, set) + attention_part(evaluation.attention, set, id);
}

std::string report_norms(const std::vector<ReportNorms>& norms) {
  std::string tiles;
  for (const auto& table : norms) tiles += norm_figure(table);
  if (tiles.empty()) return "";
  return html_figure({"card wide", "Norms of the learned matrices by offset",
                      "<div class=\"tiles\">\n" + tiles + "</div>\n",
                      "One cell per offset between two patches; the cell of offset zero is framed. "
                      "Colours range from the lowest to the highest value of each table."});
}

}  // namespace translution
