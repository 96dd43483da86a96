#include "translution/distributed/rank_group.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "translution/core/error.h"
#include "translution/core/settings.h"
#include "translution/distributed/connection.h"
#include "translution/distributed/monitor.h"
#include "translution/ops/large.h"

namespace translution {

using namespace detail;

namespace {

// Copies consecutive elements of the tensors to or from a flat buffer.
class Pieces {
 public:
  explicit Pieces(const std::vector<at::Tensor>& tensors) {
    for (const auto& tensor : tensors) {
      TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
                  "RankGroup: expected contiguous float tensors");
      flat_.push_back(tensor.view(-1));
      count_ += tensor.numel();
    }
  }

  int64_t count() const { return count_; }
  // Calls visit(piece, part of `buffer`) for the elements from `begin` on that fill the buffer.
  template <typename Visit>
  void visit(int64_t begin, const at::Tensor& buffer, const Visit& visit) const {
    int64_t offset = 0, filled = 0;
    for (const auto& tensor : flat_) {
      const int64_t size = tensor.numel(), first = std::max<int64_t>(begin + filled - offset, 0);
      const int64_t count = std::min(size - first, buffer.numel() - filled);
      if (count > 0) {
        visit(tensor.narrow(0, first, count), buffer.narrow(0, filled, count));
        filled += count;
      }
      offset += size;
    }
  }

 private:
  std::vector<at::Tensor> flat_;
  int64_t count_ = 0;
};

// The key of the exchanges that a rank has begun.
std::string exchanges_key(const RankGroup::Links& links, int rank) {
  return join("exchanges of ", links.name, "/", rank);
}

}  // namespace

RankGroup::RankGroup() = default;

RankGroup::RankGroup(const Links& links, const WorldOptions& options)
    : links_(links), timeout_(options.exchange_timeout) {
  const auto& ranks = links_->ranks;
  const auto own = std::find(ranks.begin(), ranks.end(), links_->rank);
  TORCH_INTERNAL_ASSERT(own != ranks.end());
  rank_ = static_cast<int>(own - ranks.begin());
  size_ = static_cast<int>(ranks.size());
  links_->monitor.publish(exchanges_key(*links_, links_->rank), exchanges_);
  exchange([&] {
    group_ =
        open_group(links_->store, links_->name, rank_, size_, options.interface, Seconds(timeout_));
  });
}

RankGroup::~RankGroup() = default;

// An exchange fails at once when another process closes its connection, and late when one does not
// take part. In the first case the monitor learns which one it is, and ends this process.
template <typename Work>
void RankGroup::exchange(const Work& work) {
  auto& store = links_->store;
  ++*exchanges_;
  try {
    work();
  } catch (const std::exception& error) {
    links_->monitor.wait_for_verdict();
    std::string behind;
    for (const int other : links_->ranks)
      if (other != links_->rank &&
          (!store.has(exchanges_key(*links_, other)) ||
           std::stoll(store.get(exchanges_key(*links_, other))) < *exchanges_))
        behind += join(behind.empty() ? "rank " : ", rank ", other);
    const std::string text = error.what();
    throw std::runtime_error(
        behind.empty()
            ? join("an exchange between ranks failed: ", text.substr(0, text.find('\n')))
            : join(behind, " did not take part in an exchange within ", number_text(timeout_),
                   " s (--exchange-timeout). --resume auto continues"));
  }
}

void RankGroup::sum_by_gloo(at::Tensor& values) {
  group_->sum(values);
  sent_ += 2 * (size_ - 1) * static_cast<int64_t>(values.nbytes()) / size_;
}

void RankGroup::swap(at::Tensor sent, at::Tensor received, int partner) {
  sent_ += static_cast<int64_t>(sent.nbytes());
  group_->exchange(std::move(sent), std::move(received), partner);
}

void RankGroup::sum(at::Tensor values) {
  if (group_) exchange([&] { sum_by_gloo(values); });
}

void RankGroup::wait() { sum(at::zeros({1}, at::kFloat)); }

std::string RankGroup::text_of_first(const std::string& text) {
  if (!group_) return text;
  auto length = at::zeros({1}, at::kLong);
  if (rank_ == 0) length.fill_(static_cast<int64_t>(text.size()));
  sum(length);
  auto bytes = at::zeros({length.item<int64_t>()}, at::kByte);
  if (rank_ == 0) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  if (bytes.numel() > 0) sum(bytes);
  return {static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()};
}

// Each rank halves the range that it adds up with a partner whose number differs in one bit, from
// the lowest bit on. So the sum of an element is that of a binary tree. The way back shares the
// sums. Sums of two are the same in either order.
void RankGroup::sum_as_tree(at::Tensor& values, at::Tensor& received) {
  struct Range {
    int64_t begin, count;
  };
  const auto part = [&](Range range) { return values.narrow(0, range.begin, range.count); };
  std::vector<Range> mine = {{0, values.numel()}}, theirs = {{}};
  for (int bit = 1; bit < size_; bit *= 2) {
    const auto [begin, count] = mine.back();
    const Range lower{begin, count / 2}, upper{begin + count / 2, count - count / 2};
    const bool high = (rank_ & bit) != 0;
    mine.push_back(high ? upper : lower);
    theirs.push_back(high ? lower : upper);
    auto sum = part(mine.back()), other = received.narrow(0, 0, mine.back().count);
    swap(part(theirs.back()), other, rank_ ^ bit);
    sum.add_(other);
  }
  for (int bit = size_ / 2; bit >= 1; bit /= 2) {
    swap(part(mine.back()), part(theirs.back()), rank_ ^ bit);
    mine.pop_back();
    theirs.pop_back();
  }
}

void RankGroup::tree_sum(const std::vector<at::Tensor>& tensors) {
  if (!group_) return;
  const bool is_tree = (size_ & (size_ - 1)) == 0;
  const Pieces pieces(tensors);
  const int64_t bucket = std::min(pieces.count(), kBucket);
  auto buffer = large_empty({bucket}, at::kFloat), received = large_empty({bucket}, at::kFloat);
  exchange([&] {
    for (int64_t begin = 0; begin < pieces.count(); begin += bucket) {
      auto values = buffer.narrow(0, 0, std::min(bucket, pieces.count() - begin));
      pieces.visit(begin, values,
                   [](const at::Tensor& piece, at::Tensor part) { part.copy_(piece); });
      if (is_tree)
        sum_as_tree(values, received);
      else
        sum_by_gloo(values);
      pieces.visit(begin, values,
                   [](at::Tensor piece, const at::Tensor& part) { piece.copy_(part); });
    }
  });
}

}  // namespace translution
