#include "translution/ops/relative_side.h"

#include <ATen/ATen.h>

#include "translution/ops/project.h"
#include "translution/ops/rounding.h"

namespace translution {

RelativeSide::RelativeSide(const at::Tensor& x, const at::Tensor& table, int64_t batch,
                           Precision precision)
    : table_(table), batch_(batch), precision_(precision) {
  if (x.defined()) x_ = x.transpose(0, 1).contiguous();  // [N,B,C]
}

int64_t RelativeSide::width() const { return (table_.defined() ? table_ : x_).size(-1); }

at::Tensor RelativeSide::encode(int64_t slot, const at::Tensor& tokens) const {
  if (!x_.defined()) return table_.select(0, slot).expand({tokens.size(0), batch_, table_.size(1)});
  const auto x = x_.index_select(0, tokens);  // [U,B,C]
  const auto encoded =
      table_.defined() ? project(x, {table_.select(0, slot)}, {}, false, precision_)[0] : x;
  return precision_ == Precision::bf16 ? rounded(encoded) : encoded;
}

void RelativeSide::begin_backward(bool needs_x, bool needs_table) {
  if (needs_x && x_.defined()) dx_ = at::zeros_like(x_);
  if (needs_table && table_.defined())
    dtable_ = at::zeros_like(table_, at::MemoryFormat::Contiguous);
}

void RelativeSide::add_gradient(int64_t slot, const at::Tensor& tokens, const at::Tensor& d) {
  if (!x_.defined()) {
    if (dtable_.defined()) dtable_.select(0, slot).add_(d.sum(at::IntArrayRef{0, 1}));
    return;
  }
  if (!table_.defined()) {
    if (dx_.defined()) dx_.index_add_(0, tokens, precision_ == Precision::bf16 ? rounded(d) : d);
    return;
  }
  const auto [dx, dmatrix] =
      project_gradients(d, x_.index_select(0, tokens), table_.select(0, slot), dx_.defined(),
                        dtable_.defined(), precision_);
  if (dmatrix.defined()) dtable_.select(0, slot).add_(dmatrix);
  if (dx.defined()) dx_.index_add_(0, tokens, dx);
}

at::Tensor RelativeSide::dx() const { return dx_.defined() ? dx_.transpose(0, 1) : at::Tensor(); }

}  // namespace translution
