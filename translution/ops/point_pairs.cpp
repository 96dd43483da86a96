#include "translution/ops/point_pairs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nanoflann.hpp>
#include <numeric>
#include <tuple>
#include <vector>

#include "translution/ops/compat.h"
#include "translution/ops/parallel.h"
#include "translution/ops/register.h"

namespace translution {
namespace {

constexpr const char* kPairs = "point_pairs";

void check_points(const at::Tensor& positions, const at::Tensor& first, int64_t neighbours,
                  double cutoff, const at::Tensor& special) {
  TORCH_CHECK(at::isFloatingType(positions.scalar_type()) && positions.dim() == 2, kPairs,
              ": positions must be floating-point numbers [tokens, axes], got ",
              positions.scalar_type(), " ", positions.sym_sizes());
  TORCH_CHECK(first.scalar_type() == at::kLong && first.dim() == 1 && first.sym_size(0) >= 1,
              kPairs, ": first must be int64 [clouds + 1], got ", first.scalar_type(), " ",
              first.sym_sizes());
  TORCH_CHECK(neighbours >= 0, kPairs, ": expected 0 or more neighbours, got ", neighbours);
  TORCH_CHECK(cutoff >= 0, kPairs, ": expected a cutoff of 0 or more, got ", cutoff);
  TORCH_CHECK(!special.defined() || (special.scalar_type() == at::kBool && special.dim() == 1 &&
                                     special.sym_size(0) == positions.sym_size(0)),
              kPairs, ": special must be bool [", positions.sym_size(0), "], one for each token");
}

// The points of one cloud that have a position, as nanoflann reads them.
struct Cloud {
  const double* positions;
  int64_t axes;
  std::vector<int64_t> tokens;
  size_t kdtree_get_point_count() const { return tokens.size(); }
  double kdtree_get_pt(size_t point, size_t axis) const {
    return positions[tokens[point] * axes + axis];
  }
  template <typename Box>
  bool kdtree_get_bbox(Box&) const {
    return false;
  }
};

using Tree =
    nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Adaptor<double, Cloud>, Cloud, -1, uint32_t>;
#if NANOFLANN_VERSION < 0x150
using SearchParameters = nanoflann::SearchParams;
#else
using nanoflann::SearchParameters;
#endif

struct Neighbour {
  double squared;  // distance
  uint32_t point;
  bool operator<(const Neighbour& other) const {
    return std::tie(squared, point) < std::tie(other.squared, other.point);
  }
};

// What nanoflann reports points to: all within the squared distance, the border included.
struct Within {
  using DistanceType = double;  // newer versions of nanoflann ask for both types
  using IndexType = uint32_t;
  double limit;
  std::vector<Neighbour>& found;
  double worstDist() const {
    return std::nextafter(limit, std::numeric_limits<double>::infinity());
  }
  bool addPoint(double squared, uint32_t point) {
    if (squared <= limit) found.push_back({squared, point});
    return true;
  }
  bool full() const { return true; }
  size_t size() const { return found.size(); }
  bool empty() const { return found.empty(); }
  void sort() {}
};

// The squared distance of the k-th nearest point.
double distance_of(const Tree& tree, const double* at, int64_t k, std::vector<uint32_t>& points,
                   std::vector<double>& distances) {
  const size_t count = tree.knnSearch(at, k, points.data(), distances.data());
  return distances[count - 1];
}

// Which points of a cloud a query is paired with.
struct Near {
  int64_t neighbours;
  double cutoff;
  bool all() const { return neighbours == 0 && cutoff == 0; }
};

// One cloud: its tree, and the tokens that have no position. nanoflann keeps any of the points at
// the distance of the last neighbour; so all of them are found, and the lowest indices kept.
class CloudSearch {
 public:
  // What a thread needs to search.
  struct Scratch {
    std::vector<uint32_t> points;
    std::vector<double> distances;
    std::vector<Neighbour> found;
  };

  CloudSearch(const double* positions, int64_t axes, int64_t begin, int64_t end,
              const bool* special, const Near& near)
      : begin_(begin), end_(end), near_(near), cloud_{positions, axes, {}} {
    for (int64_t t = begin; t < end; ++t)
      (special && special[t] ? special_ : cloud_.tokens).push_back(t);
    if (near.all() || cloud_.tokens.empty()) return;
    tree_ = std::make_unique<Tree>(axes, cloud_);
    tree_->buildIndex();
  }

  void keys(int64_t token, Scratch& scratch, std::vector<int64_t>& out) const {
    out.clear();
    if (tree_ == nullptr || std::binary_search(special_.begin(), special_.end(), token)) {
      out.resize(end_ - begin_);
      std::iota(out.begin(), out.end(), begin_);
      return;
    }
    find_nearest(cloud_.positions + token * cloud_.axes, scratch);
    for (const auto& neighbour : scratch.found) out.push_back(cloud_.tokens[neighbour.point]);
    out.insert(out.end(), special_.begin(), special_.end());
    std::sort(out.begin(), out.end());
  }

 private:
  void find_nearest(const double* at, Scratch& s) const {
    double limit =
        near_.cutoff > 0 ? near_.cutoff * near_.cutoff : std::numeric_limits<double>::infinity();
    const int64_t k = std::min<int64_t>(near_.neighbours, cloud_.tokens.size());
    if (k > 0) {
      s.points.resize(k), s.distances.resize(k);
      limit = std::min(limit, distance_of(*tree_, at, k, s.points, s.distances));
    }
    s.found.clear();
    Within within{limit, s.found};
    tree_->findNeighbors(within, at, SearchParameters());
    std::sort(s.found.begin(), s.found.end());
    if (k > 0 && static_cast<int64_t>(s.found.size()) > k) s.found.resize(k);
  }

  const int64_t begin_, end_;
  const Near near_;
  std::vector<int64_t> special_;
  Cloud cloud_;
  std::unique_ptr<Tree> tree_;
};

// The keys of each token.
std::vector<std::vector<int64_t>> find_keys(const at::Tensor& positions, const at::Tensor& first,
                                            const Near& near, const bool* special) {
  constexpr int64_t kTokens = 64;  // of a thread at a time
  const int64_t clouds = first.numel() - 1, tokens = positions.size(0);
  const int64_t* const from = first.data_ptr<int64_t>();
  std::vector<std::unique_ptr<CloudSearch>> searches(clouds);
  parallel_each(clouds, [&] {
    return [&](int64_t c) {
      searches[c] = std::make_unique<CloudSearch>(positions.data_ptr<double>(), positions.size(1),
                                                  from[c], from[c + 1], special, near);
    };
  });
  std::vector<std::vector<int64_t>> keys(tokens);
  parallel_each((tokens + kTokens - 1) / kTokens, [&] {
    return [&, scratch = CloudSearch::Scratch()](int64_t block) mutable {
      for (int64_t t = block * kTokens; t < std::min(tokens, (block + 1) * kTokens); ++t) {
        const int64_t cloud = std::upper_bound(from, from + clouds + 1, t) - from - 1;
        searches[cloud]->keys(t, scratch, keys[t]);
      }
    };
  });
  return keys;
}

void check_clouds(const at::Tensor& first, int64_t tokens) {
  const int64_t* const at = first.data_ptr<int64_t>();
  const int64_t clouds = first.numel() - 1;
  TORCH_CHECK(at[0] == 0 && at[clouds] == tokens && std::is_sorted(at, at + clouds + 1), kPairs,
              ": first must rise from 0 to ", tokens, ", the number of tokens, got ", first);
}

std::tuple<at::Tensor, at::Tensor> pairs_forward(const at::Tensor& positions,
                                                 const at::Tensor& first, int64_t neighbours,
                                                 double cutoff, const OptionalTensor& special) {
  const auto flags = value_or_undefined(special);
  check_points(positions, first, neighbours, cutoff, flags);
  const auto p = positions.to(at::kCPU, at::kDouble).contiguous(), f = first.cpu().contiguous();
  const auto s = flags.defined() ? flags.cpu().contiguous() : flags;
  check_clouds(f, p.size(0));
  const auto finite = p.isfinite().all(1);
  const auto bad = (s.defined() ? finite.logical_or(s) : finite).logical_not();
  TORCH_CHECK(!bad.any().item<bool>(), kPairs, ": the position of token ",
              bad.to(at::kByte).argmax().item<int64_t>(), " is not finite");
  const auto keys =
      find_keys(p, f, {neighbours, cutoff}, s.defined() ? s.data_ptr<bool>() : nullptr);
  int64_t count = 0;
  for (const auto& of_token : keys) count += static_cast<int64_t>(of_token.size());
  auto query = at::empty({count}, f.options()), key = at::empty({count}, f.options());
  int64_t *to_query = query.data_ptr<int64_t>(), *to_key = key.data_ptr<int64_t>();
  for (size_t t = 0; t < keys.size(); ++t)
    for (const int64_t k : keys[t]) *to_query++ = static_cast<int64_t>(t), *to_key++ = k;
  return {query.to(positions.device()), key.to(positions.device())};
}

}  // namespace

std::pair<at::Tensor, at::Tensor> point_pairs(const at::Tensor& positions, const at::Tensor& first,
                                              int64_t neighbours, double cutoff,
                                              const at::Tensor& special) {
  const auto [query, key] = pairs_forward(positions, first, neighbours, cutoff, optional(special));
  return {query, key};
}

// The number of pairs depends on the positions, so it has no shape before it runs.
TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def(
      "point_pairs(Tensor positions, Tensor first, int neighbours=0, float cutoff=0, "
      "Tensor? special=None) -> (Tensor query, Tensor key)");
  m.impl("point_pairs", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                                        torch::CppFunction(pairs_forward)));
}

}  // namespace translution
