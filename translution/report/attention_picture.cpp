#include "translution/report/attention_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "translution/core/error.h"
#include "translution/report/axis.h"
#include "translution/report/heatmap.h"
#include "translution/report/html.h"

namespace translution {

using namespace detail;

namespace {

// In pixels. The image without weights is in a column of its own at the left.
constexpr double kGap = 6, kHeaderHeight = 20, kRowNameWidth = 54, kImageColumn = 104;
constexpr double kPageWidth = 1040;

// The frame around points, which is as wide as an image of kCloudWidth pixels.
constexpr double kCloudWidth = 100, kCloudMargin = 4, kDot = 1.8;

struct CloudFrame {
  explicit CloudFrame(const std::vector<AttentionPicture::Point>& points) {
    if (points.empty()) return;
    left = right = points[0].x, top = bottom = points[0].y;
    for (const auto& point : points) {
      left = std::min(left, point.x), right = std::max(right, point.x);
      top = std::min(top, point.y), bottom = std::max(bottom, point.y);
    }
    const double side = std::max({right - left, bottom - top, 1e-9});
    scale = (kCloudWidth - 2 * kCloudMargin) / side;
    aspect = std::max(0.25, (bottom - top) / side * (1 - 2 * kCloudMargin / kCloudWidth) +
                                2 * kCloudMargin / kCloudWidth);
  }
  // In the middle of a frame of this width.
  double x(double at, double width) const {
    return (0.5 * kCloudWidth + (at - 0.5 * (left + right)) * scale) * width / kCloudWidth;
  }
  double y(double at, double width) const {
    return (0.5 * kCloudWidth * aspect + (at - 0.5 * (top + bottom)) * scale) * width / kCloudWidth;
  }

  double left = 0, right = 0, top = 0, bottom = 0, scale = 1, aspect = 1;
};

// The layout: a row per layer and a column per head, in ascending order.
struct Grid {
  explicit Grid(const AttentionPicture& picture) : frame(picture.points) {
    std::set<int64_t> layer_set, head_set;
    for (const auto& head : picture.heads) {
      layer_set.insert(head.layer);
      head_set.insert(head.head);
    }
    layers.assign(layer_set.begin(), layer_set.end());
    heads.assign(head_set.begin(), head_set.end());
    tile = std::clamp((kPageWidth - kImageColumn - kRowNameWidth - kGap) / heads.size() - kGap,
                      24.0, 84.0);
    aspect = picture.points.empty() ? static_cast<double>(picture.image.rows) / picture.image.cols
                                    : frame.aspect;
  }

  double x(int64_t head) const {
    return kImageColumn + kRowNameWidth + index_of(heads, head) * (tile + kGap);
  }
  double y(int64_t layer) const {
    return kHeaderHeight + index_of(layers, layer) * (tile * aspect + kGap);
  }
  double width() const { return x(heads.back()) + tile; }
  double height() const {
    return std::max(y(layers.back()) + tile * aspect,
                    kHeaderHeight + (kImageColumn - 12) * aspect) +
           2;
  }

  CloudFrame frame;
  std::vector<int64_t> layers, heads;
  double tile, aspect;

 private:
  static int64_t index_of(const std::vector<int64_t>& sorted, int64_t value) {
    return std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin();
  }
};

std::string rectangle(const char* kind, double x, double y, double width, double height) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"", kind, x, y,
      width, height);
}

// Draws the image, `image_width` pixels wide, with its top left corner at (x, y) and this width.
std::string draw_image(const std::string& id, double x, double y, double width,
                       double image_width) {
  return fmt::format("<use href=\"#{}\" transform=\"translate({:.2f} {:.2f}) scale({:.4f})\"/>\n",
                     id, x, y, width / image_width);
}

std::string dot(const char* kind, double x, double y, double radius) {
  return fmt::format("<circle class=\"{}\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\"", kind, x, y,
                     radius);
}

// The image or the points, once for all maps.
std::string define_image(const AttentionPicture& picture, const Grid& grid, const std::string& id) {
  if (picture.points.empty())
    return fmt::format("<defs><image id=\"{}\" width=\"{}\" height=\"{}\" href=\"{}\"/></defs>\n",
                       id, picture.image.cols, picture.image.rows, image_uri(picture.image));
  std::string svg = fmt::format("<defs><g id=\"{}\">\n", id);
  for (const auto& [x, y] : picture.points)
    svg += dot("point", grid.frame.x(x, kCloudWidth), grid.frame.y(y, kCloudWidth), kDot) + "/>\n";
  return svg + "</g></defs>\n";
}

std::string draw_query(const AttentionPicture& picture, const Grid& grid, double x, double y,
                       double width, double height) {
  if (picture.query < 0) return "";
  if (!picture.points.empty()) {
    const auto& point = picture.points[picture.query];
    return dot("query", x + grid.frame.x(point.x, width), y + grid.frame.y(point.y, width),
               2.5 * kDot * width / kCloudWidth) +
           "/>\n";
  }
  const double cell_x = width / picture.cols, cell_y = height / picture.rows;
  return rectangle("query", x + picture.query % picture.cols * cell_x,
                   y + picture.query / picture.cols * cell_y, cell_x, cell_y) +
         "/>\n";
}

std::string draw_weights(const AttentionPicture& picture, const AttentionPicture::Head& head,
                         const Grid& grid) {
  const double x = grid.x(head.head), y = grid.y(head.layer);
  double largest = 0;
  for (const double weight : head.weights)
    if (is_drawable(weight, false)) largest = std::max(largest, weight);
  const auto share_of = [&](double weight) {
    return is_drawable(weight, false) && largest > 0 ? std::max(0.0, weight / largest) : 0;
  };
  std::string svg;
  for (size_t i = 0; i < picture.points.size(); ++i) {
    const auto& point = picture.points[i];
    const double share = share_of(head.weights[i]);
    svg += dot("weight", x + grid.frame.x(point.x, grid.tile), y + grid.frame.y(point.y, grid.tile),
               (1 + share) * kDot * grid.tile / kCloudWidth);
    svg += fmt::format(
        " fill-opacity=\"{:.2f}\"><title>layer {}, head {}, point {}: {}</title></circle>\n", share,
        head.layer, head.head, i + 1, value_text(head.weights[i]));
  }
  if (!picture.points.empty()) return svg;
  const double width = grid.tile / picture.cols, height = grid.tile * grid.aspect / picture.rows;
  svg += rectangle("dim", x, y, grid.tile, grid.tile * grid.aspect) + "/>\n";
  for (int64_t i = 0; i < picture.rows * picture.cols; ++i) {
    const double weight = head.weights[i];
    const double share = share_of(weight);
    svg += rectangle("weight", x + i % picture.cols * width, y + i / picture.cols * height, width,
                     height);
    svg += fmt::format(
        " fill-opacity=\"{:.2f}\"><title>layer {}, head {}, row {}, column {}: {}"
        "</title></rect>\n",
        0.85 * share, head.layer, head.head, i / picture.cols + 1, i % picture.cols + 1,
        value_text(weight));
  }
  return svg;
}

std::string draw_names(const Grid& grid) {
  std::string svg;
  for (const int64_t head : grid.heads)
    svg += fmt::format("<text class=\"tick middle\" x=\"{:.1f}\" y=\"13\">{}{}</text>\n",
                       grid.x(head) + grid.tile / 2, grid.tile >= 50 ? "head " : "", head);
  for (const int64_t layer : grid.layers)
    svg += fmt::format("<text class=\"tick end\" x=\"{:.1f}\" y=\"{:.1f}\">layer {}</text>\n",
                       kImageColumn + kRowNameWidth - 8,
                       grid.y(layer) + grid.tile * grid.aspect / 2 + 4, layer);
  return svg;
}

void check_points(const AttentionPicture& picture) {
  const auto count = static_cast<int64_t>(picture.points.size());
  for (const auto& [x, y] : picture.points)
    require(is_drawable(x, false) && is_drawable(y, false),
            "attention map: a point is not at finite coordinates");
  for (const auto& head : picture.heads)
    require(head.weights.size() == picture.points.size(), "attention map: expected ", count,
            " weights, one per point, got ", head.weights.size());
  require(picture.query >= -1 && picture.query < count,
          "attention map: expected a query from -1 to ", count - 1, ", got ", picture.query);
}

void check(const AttentionPicture& picture) {
  if (!picture.points.empty()) {
    require(!picture.heads.empty(), "attention map: expected the weights of a head, got none");
    return check_points(picture);
  }
  check_image(picture.image);
  require(!picture.heads.empty(), "attention map: expected the weights of a head, got none");
  for (const auto& head : picture.heads)
    check_grid("attention map", picture.rows, picture.cols, head.weights.size());
  require(picture.query >= -1 && picture.query < picture.rows * picture.cols,
          "attention map: expected a query from -1 to ", picture.rows * picture.cols - 1, ", got ",
          picture.query);
}

}  // namespace

std::string svg_attention(const AttentionPicture& picture, const std::string& id) {
  check(picture);
  const Grid grid(picture);
  const double first_width = kImageColumn - 12;
  const double image_width = picture.points.empty() ? picture.image.cols : kCloudWidth;
  std::string svg = fmt::format(
      "<svg class=\"attention\" role=\"img\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "style=\"max-width:{0:.0f}px\">\n",
      grid.width(), grid.height());
  svg += define_image(picture, grid, html_escape(id));
  svg += draw_names(grid) + draw_image(id, 0, kHeaderHeight, first_width, image_width);
  svg += draw_query(picture, grid, 0, kHeaderHeight, first_width, first_width * grid.aspect);
  for (const auto& head : picture.heads) {
    const double x = grid.x(head.head), y = grid.y(head.layer);
    svg += draw_image(id, x, y, grid.tile, image_width) + draw_weights(picture, head, grid);
    svg += draw_query(picture, grid, x, y, grid.tile, grid.tile * grid.aspect);
  }
  return svg + "</svg>\n";
}

}  // namespace translution
