// The passes of plain attention in bfloat16, compared with sums in double of the rounded operands.

#include "translution/kernels/content_bf16.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/kernels/bf16_cases.h"

namespace translution::kernels {
namespace {

using ContentShape = Bf16ContentPasses::Shape;

struct ContentCase {
  int64_t batch;
  ContentShape shape;
  int64_t gap;  // channels between the rows of features
};

std::ostream& operator<<(std::ostream& out, const ContentCase& c) {
  return out << c.batch << " samples, " << c.shape.heads << " heads, " << c.shape.queries
             << " queries, " << c.shape.tokens << " tokens, widths " << c.shape.width << " and "
             << c.shape.value_width << ", gap " << c.gap;
}

std::vector<ContentCase> content_cases() {
  std::vector<ContentCase> all = {{2, {3, 50, 50, 64, 64}, 0}, {1, {2, 97, 160, 8, 26}, 5},
                                  {2, {1, 1, 197, 72, 97}, 3}, {1, {2, 33, 26, 97, 72}, 1},
                                  {1, {1, 5, 800, 26, 8}, 0},  {2, {2, 32, 32, 32, 16}, 32},
                                  {1, {3, 7, 9, 1, 1}, 2}};
  for (int64_t queries = 1; queries <= 33; ++queries)
    all.push_back({1, {2, queries, 34 - queries, 24 + queries % 3, 20 + queries}, queries % 2});
  return all;
}

// Features [B,rows,heads*width], with NaN gaps that no pass may read or write.
class HeadRows {
 public:
  HeadRows(const ContentCase& c, int64_t rows, int64_t width, std::mt19937& random)
      : heads_(c.shape.heads),
        rows_(rows),
        width_(width),
        stride_(heads_ * width + c.gap),
        numbers_(static_cast<size_t>(c.batch * rows * stride_), NAN) {
    std::normal_distribution<float> normal;
    for (int64_t r = 0; r < c.batch * rows; ++r)
      for (int64_t channel = 0; channel < heads_ * width; ++channel)
        numbers_[static_cast<size_t>(r * stride_ + channel)] = normal(random);
  }

  Features<const float> in() const { return {numbers_.data(), rows_ * stride_, stride_}; }
  Features<float> out() { return {numbers_.data(), rows_ * stride_, stride_}; }

  float at(int64_t item, int64_t row, int64_t channel) const {
    return numbers_[static_cast<size_t>((item / heads_ * rows_ + row) * stride_ +
                                        item % heads_ * width_ + channel)];
  }
  double rounded(int64_t item, int64_t row, int64_t channel) const {
    return value_of(bf16_of(at(item, row, channel)));
  }
  int64_t touched() const {
    int64_t count = 0;
    for (size_t i = 0; i < numbers_.size(); ++i)
      count += static_cast<int64_t>(i) % stride_ >= heads_ * width_ && !std::isnan(numbers_[i]);
    return count;
  }

 private:
  int64_t heads_, rows_, width_, stride_;
  std::vector<float> numbers_;
};

// Maps [B,heads,Nq,N], followed by a guard value that no pass may overwrite.
class Maps {
 public:
  Maps(const ContentCase& c, std::mt19937& random)
      : queries_(c.shape.queries),
        tokens_(c.shape.tokens),
        numbers_(static_cast<size_t>(c.batch * c.shape.heads * queries_ * tokens_ + 1)) {
    std::normal_distribution<float> normal;
    for (float& number : numbers_) number = normal(random);
    numbers_.back() = 12345.5f;
  }

  float* data() { return numbers_.data(); }
  float at(int64_t item, int64_t i, int64_t j) const {
    return numbers_[static_cast<size_t>((item * queries_ + i) * tokens_ + j)];
  }
  double rounded(int64_t item, int64_t i, int64_t j) const {
    return value_of(bf16_of(at(item, i, j)));
  }
  bool guard_untouched() const { return numbers_.back() == 12345.5f; }

 private:
  int64_t queries_, tokens_;
  std::vector<float> numbers_;
};

using ItemNumber = std::function<double(int64_t item, int64_t row, int64_t column)>;

// Compares every item's [m,n] with left [m,k] right [k,n].
void expect_items(int64_t items, int64_t m, int64_t n, int64_t k, const ItemNumber& got,
                  const ItemNumber& left, const ItemNumber& right) {
  double worst = 0;  // relative to the allowed error
  for (int64_t item = 0; item < items; ++item)
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double term = left(item, row, i) * right(item, i, column);
          sum += term;
          size += std::abs(term);
        }
        const double error = std::abs(got(item, row, column) - sum);
        const double allowed = static_cast<double>(k + 2) * std::ldexp(size, -24);
        worst = std::max(worst, error <= allowed ? 0 : std::isnan(error) ? 1e9 : error / allowed);
      }
  EXPECT_LE(worst, 1);
}

ItemNumber of_rounded(const HeadRows& side) {
  return [&side](int64_t item, int64_t row, int64_t c) { return side.rounded(item, row, c); };
}
ItemNumber of_rounded(const Maps& maps) {
  return [&maps](int64_t item, int64_t i, int64_t j) { return maps.rounded(item, i, j); };
}
ItemNumber numbers_in(const HeadRows& side) {
  return [&side](int64_t item, int64_t row, int64_t c) { return side.at(item, row, c); };
}
ItemNumber numbers_in(const Maps& maps) {
  return [&maps](int64_t item, int64_t i, int64_t j) { return maps.at(item, i, j); };
}
ItemNumber transpose_of(const ItemNumber& x) {
  return [x](int64_t item, int64_t row, int64_t column) { return x(item, column, row); };
}

class Bf16Content : public ::testing::TestWithParam<Isa> {
 protected:
  // check(case, items, passes, random)
  template <typename Check>
  void for_cases(const Check& check) const {
    for (const ContentCase& c : content_cases()) {
      SCOPED_TRACE(testing::Message() << c);
      std::mt19937 random(3);
      Bf16ContentPasses passes(c.shape, GetParam());
      check(c, c.batch * c.shape.heads, passes, random);
    }
  }
};

TEST_P(Bf16Content, ScoresAreProductsOfRoundedQueriesAndKeys) {
  for_cases([](const ContentCase& c, int64_t items, auto& passes, auto& random) {
    const auto& [heads, Nq, N, D, F] = c.shape;
    const HeadRows q(c, Nq, D, random), k(c, N, D, random);
    Maps maps(c, random);
    passes.scores(0, items, q.in(), k.in(), maps.data());
    expect_items(items, Nq, N, D, numbers_in(maps), of_rounded(q), transpose_of(of_rounded(k)));
    EXPECT_TRUE(maps.guard_untouched());
  });
}

TEST_P(Bf16Content, OutputsAreSumsOfRoundedValues) {
  for_cases([](const ContentCase& c, int64_t items, auto& passes, auto& random) {
    const auto& [heads, Nq, N, D, F] = c.shape;
    const HeadRows v(c, N, F, random);
    HeadRows out(c, Nq, F, random);
    Maps maps(c, random);
    passes.values(0, items, maps.data(), v.in(), out.out());
    expect_items(items, Nq, F, N, numbers_in(out), of_rounded(maps), of_rounded(v));
    EXPECT_EQ(out.touched(), 0);
  });
}

TEST_P(Bf16Content, GradientsOfMapsAndValuesUseRoundedOperands) {
  for_cases([](const ContentCase& c, int64_t items, auto& passes, auto& random) {
    const auto& [heads, Nq, N, D, F] = c.shape;
    const HeadRows v(c, N, F, random), d_out(c, Nq, F, random);
    HeadRows dv(c, N, F, random);
    Maps maps(c, random), d_maps(c, random);
    passes.values_backward(0, items, maps.data(), v.in(), d_out.in(), d_maps.data(), dv.out());
    expect_items(items, Nq, N, F, numbers_in(d_maps), of_rounded(d_out),
                 transpose_of(of_rounded(v)));
    expect_items(items, N, F, Nq, numbers_in(dv), transpose_of(of_rounded(maps)),
                 of_rounded(d_out));
    EXPECT_EQ(dv.touched(), 0);
    EXPECT_TRUE(d_maps.guard_untouched());
  });
}

TEST_P(Bf16Content, GradientsOfQueriesAndKeysUseRoundedOperands) {
  for_cases([](const ContentCase& c, int64_t items, auto& passes, auto& random) {
    const auto& [heads, Nq, N, D, F] = c.shape;
    const HeadRows q(c, Nq, D, random), k(c, N, D, random);
    HeadRows dq(c, Nq, D, random), dk(c, N, D, random);
    Maps d_scores(c, random);
    passes.scores_backward(0, items, q.in(), k.in(), d_scores.data(), dq.out(), dk.out());
    expect_items(items, Nq, D, N, numbers_in(dq), of_rounded(d_scores), of_rounded(k));
    expect_items(items, N, D, Nq, numbers_in(dk), transpose_of(of_rounded(d_scores)),
                 of_rounded(q));
    EXPECT_EQ(dq.touched() + dk.touched(), 0);
  });
}

TEST_P(Bf16Content, ComputesOnlyTheRequestedGradientsAndItems) {
  const ContentCase c{2, {2, 9, 11, 26, 7}, 1};
  std::mt19937 random(4);
  Bf16ContentPasses passes(c.shape, GetParam());
  const HeadRows q(c, 9, 26, random), k(c, 11, 26, random), d_out(c, 9, 7, random);
  HeadRows v(c, 11, 7, random), dk(c, 11, 26, random);
  Maps maps(c, random), scores(c, random);
  const Maps before = scores;
  passes.values_backward(0, 4, maps.data(), v.in(), d_out.in(), nullptr, {});
  passes.scores_backward(0, 4, q.in(), k.in(), maps.data(), {}, dk.out());
  expect_items(4, 11, 26, 9, numbers_in(dk), transpose_of(of_rounded(maps)), of_rounded(q));
  passes.scores(1, 3, q.in(), k.in(), scores.data());
  for (const int64_t item : {0, 3}) EXPECT_EQ(scores.at(item, 8, 10), before.at(item, 8, 10));
  expect_items(
      1, 9, 11, 26, [&](int64_t, int64_t i, int64_t j) { return scores.at(2, i, j); },
      [&](int64_t, int64_t i, int64_t d) { return q.rounded(2, i, d); },
      [&](int64_t, int64_t d, int64_t j) { return k.rounded(2, j, d); });
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Bf16Content, ::testing::ValuesIn(available_isas()),
                         [](const auto& test) { return std::string(name_of(kIsas, test.param)); });

}  // namespace
}  // namespace translution::kernels
