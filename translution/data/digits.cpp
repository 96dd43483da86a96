#include "translution/data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "translution/core/error.h"
#include "translution/data/digit_shapes.h"

namespace translution {

using namespace detail;

namespace {

constexpr double kPi = 3.141592653589793;

struct Point {
  double x, y;
};

using Curve = std::vector<Point>;
using Ink = std::array<float, kDigitSide * kDigitSide>;

// A random smooth distortion of the whole shape, in its own coordinates.
struct Bend {
  explicit Bend(Random& random)
      : waist(std::exp(0.16 * random.normal())),
        taper(0.22 * random.normal()),
        wave(0.022 * random.normal()),
        phase(random.uniform(0, 2 * kPi)),
        bow(0.07 * random.normal()) {}

  Point operator()(Point p) const {
    const double y = std::pow(std::clamp(p.y, 0.0, 1.0), waist);  // moves the middle up or down
    const double middle = 0.3, from_middle = y - 0.5;
    const double x = middle + (p.x - middle) * (1 + std::clamp(taper, -0.5, 0.5) * from_middle);
    return {x + wave * std::sin(5 * y + phase) + bow * 4 * from_middle * from_middle,
            y + wave * std::cos(5 * x + phase)};
  }

  double waist, taper, wave, phase, bow;
};

// Random rotation, slant and width; fit() sets size and position afterwards.
struct Lean {
  explicit Lean(Random& random)
      : slant(std::clamp(0.1 + 0.2 * random.normal(), -0.35, 0.6)),
        angle(0.09 * std::clamp(random.normal(), -2.0, 2.0)),
        width(random.uniform(0.8, 1.5)) {}

  Point operator()(Point p) const {
    const double x = width * p.x - slant * p.y, y = p.y;
    return {std::cos(angle) * x - std::sin(angle) * y, std::sin(angle) * x + std::cos(angle) * y};
  }

  double slant, angle, width;
};

struct Pen {
  explicit Pen(Random& random)
      : radius(std::clamp(1.25 * std::exp(0.28 * random.normal()), 0.65, 2.2)),
        pressure(random.uniform(0, 0.25)),
        speed(random.uniform(0.05, 0.25)),
        phase(random.uniform(0, 2 * kPi)),
        softness(random.uniform(0.8, 1.5)) {}

  // Half the line width in pixels, `step` steps into the stroke.
  double radius_at(size_t step) const {
    return radius * (1 + pressure * std::sin(speed * static_cast<double>(step) + phase));
  }

  double radius, pressure, speed, phase, softness;
};

// The Catmull-Rom curve from b (t = 0) to c (t = 1), with neighbours a and d.
Point interpolate(Point a, Point b, Point c, Point d, double t) {
  const auto mix = [t](double pa, double pb, double pc, double pd) {
    return pb + 0.5 * t *
                    (pc - pa + t * (2 * pa - 5 * pb + 4 * pc - pd + t * (3 * (pb - pc) + pd - pa)));
  };
  return {mix(a.x, b.x, c.x, d.x), mix(a.y, b.y, c.y, d.y)};
}

// The knots of one stroke, bent, each with its own random displacement.
Curve jitter(const Stroke& stroke, const Bend& bend, double amount, Random& random) {
  Curve knots;
  for (const Knot& knot : stroke) {
    Point p = bend({knot.x / 100, knot.y / 100});
    p.x += amount * random.normal();
    p.y += amount * random.normal();
    knots.push_back(p);
  }
  return knots;
}

Curve smooth(const Stroke& stroke, const Curve& knots) {
  constexpr int kSteps = 7;
  Curve curve{knots[0]};
  for (size_t k = 0; k + 1 < knots.size(); ++k) {
    const Point b = knots[k], c = knots[k + 1];
    const Point a = k == 0 || stroke[k].corner ? b : knots[k - 1];
    const Point d = k + 2 == knots.size() || stroke[k + 1].corner ? c : knots[k + 2];
    for (int step = 1; step <= kSteps; ++step)
      curve.push_back(interpolate(a, b, c, d, static_cast<double>(step) / kSteps));
  }
  return curve;
}

std::vector<Curve> write_shape(const Shape& shape, Random& random) {
  const Bend bend(random);
  const Lean lean(random);
  const double amount = random.uniform(0.006, 0.026);
  std::vector<Curve> curves;
  for (const Stroke& stroke : shape) {
    curves.push_back(smooth(stroke, jitter(stroke, bend, amount, random)));
    for (Point& p : curves.back()) p = lean(p);
  }
  return curves;
}

// Scales the curves so that the longer side of the ink is 16.5 to 20 pixels, and centres them
// within a pixel.
void fit(std::vector<Curve>& curves, double radius, Random& random) {
  Point low{1e9, 1e9}, high{-1e9, -1e9};
  for (const Curve& curve : curves) {
    for (const Point& p : curve) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
  }
  const double side = random.uniform(16.5, 20) - 2 * radius;
  const double scale = side / std::max(high.x - low.x, high.y - low.y);
  const double middle = 0.5 * (kDigitSide - 1);
  const Point to{middle + random.uniform(-1, 1), middle + random.uniform(-1, 1)};
  for (Curve& curve : curves) {
    for (Point& p : curve) {
      p.x = to.x + scale * (p.x - 0.5 * (low.x + high.x));
      p.y = to.y + scale * (p.y - 0.5 * (low.y + high.y));
    }
  }
}

double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double along = (p.x - a.x) * dx + (p.y - a.y) * dy;
  const double t = length > 0 ? std::clamp(along / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

// Coverage falls from 1 to 0 over `softness` pixels around the edge of the line.
void draw_segment(Point a, Point b, double radius, double softness, Ink& ink) {
  const double reach = radius + 0.5 * softness;
  const auto first = [&](double u, double v) {
    return std::max<int64_t>(0, static_cast<int64_t>(std::ceil(std::min(u, v) - reach)));
  };
  const auto last = [&](double u, double v) {
    return std::min<int64_t>(kDigitSide - 1,
                             static_cast<int64_t>(std::floor(std::max(u, v) + reach)));
  };
  for (int64_t y = first(a.y, b.y); y <= last(a.y, b.y); ++y) {
    for (int64_t x = first(a.x, b.x); x <= last(a.x, b.x); ++x) {
      const Point p{static_cast<double>(x), static_cast<double>(y)};
      const double covered = (reach - distance_to_segment(p, a, b)) / softness;
      float& pixel = ink[y * kDigitSide + x];
      pixel = std::max(pixel, static_cast<float>(std::clamp(covered, 0.0, 1.0)));
    }
  }
}

// Adds grain to the ink. The background stays exactly black, so the image has no visible border on
// a canvas.
void render(const Ink& ink, Random& random, uint8_t* pixels) {
  const double brightness = random.uniform(215, 275), grain = random.uniform(0, 0.12);
  for (size_t i = 0; i < ink.size(); ++i) {
    const double value = ink[i] > 0 ? brightness * ink[i] * (1 - grain * random.uniform()) : 0;
    pixels[i] = static_cast<uint8_t>(std::min(value, 255.0));
  }
}

}  // namespace

void draw_digit(int label, Random& random, uint8_t* pixels) {
  require(0 <= label && label < 10, "draw_digit: expected a digit from 0 to 9, got ", label);
  const auto& shapes = digit_shapes(label);
  auto curves = write_shape(shapes[random.below(static_cast<int64_t>(shapes.size()))], random);
  const Pen pen(random);
  fit(curves, pen.radius, random);
  Ink ink{};
  for (const Curve& curve : curves)
    for (size_t i = 1; i < curve.size(); ++i)
      draw_segment(curve[i - 1], curve[i], pen.radius_at(i), pen.softness, ink);
  render(ink, random, pixels);
}

}  // namespace translution
