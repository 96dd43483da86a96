#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "translution/nn/regrid.h"

namespace translution {

/// Links one tensor of another format ("theirs") to the tensors of ours that hold the same numbers.
/// The links of a model are the complete mapping between the two formats. Links only rearrange
/// numbers, except for constants. So a conversion in both directions gives the same tensors again,
/// and gradients convert as weights do.
struct Link {
  std::string theirs;  ///< empty: their format has no tensor for `ours`
  std::vector<int64_t> shape;
  std::string meaning;            ///< description of the tensor for messages
  std::vector<std::string> ours;  ///< empty: a constant of theirs
  std::function<std::vector<at::Tensor>(const at::Tensor&)> split;
  std::function<at::Tensor(const std::vector<at::Tensor>&)> join;
  at::Tensor value;  ///< expected value of a constant of theirs
};

using Links = std::vector<Link>;

/// The same numbers in the same order; the shapes may differ in dimensions of size 1.
Link same(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
          const std::string& ours, std::vector<int64_t> our_shape);
/// A weight of torch.nn.Linear, [sum of outs, in]: the transposes of our matrices [in, out], one
/// below the other.
Link stacked(const std::string& theirs, int64_t in, const std::vector<int64_t>& outs,
             const std::string& meaning, std::vector<std::string> ours);
/// Our tensors side by side: [in, sum of widths], or [sum of widths] for vectors.
Link side_by_side(const std::string& theirs, std::vector<int64_t> shape,
                  const std::vector<int64_t>& widths, const std::string& meaning,
                  std::vector<std::string> ours);
/// A row per slot: row r of theirs is row `rows[r]` of ours.
Link reordered(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
               const std::string& ours, const std::vector<int64_t>& rows);
/// Any other rearrangement of one tensor, with the functions for both directions.
Link rearranged(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
                const std::string& ours, std::function<at::Tensor(const at::Tensor&)> to_our_layout,
                std::function<at::Tensor(const at::Tensor&)> to_their_layout);
/// A tensor of theirs that follows from the model's options: compared on reading, created on
/// writing.
Link constant(const std::string& theirs, const std::string& meaning, const at::Tensor& value);

/// Adds the links of a norm or linear layer that is the same in both formats: `.weight` of this
/// shape, and `.bias` of shape [shape[0]].
void add_pair(Links& links, const std::string& theirs, const std::string& ours,
              const std::vector<int64_t>& shape, const std::string& meaning);

/// Converts their tensors to ours. Throws on a tensor that is missing, unknown, of another shape,
/// not floating-point or of another type than the rest, and on a constant that differs. The message
/// begins with `source` and has the tensor's name, what was expected and what to do.
NamedTensors to_ours(const Links& links, const NamedTensors& theirs, const std::string& source);

/// Converts our tensors to theirs, with the same checks. Constants get the type of the weights.
NamedTensors to_theirs(const Links& links, const NamedTensors& ours, const std::string& source);

/// Removes the prefix if all names begin with it, such as "module." of a model trained on several
/// devices.
NamedTensors without_prefix(const NamedTensors& tensors, const std::string& prefix);

}  // namespace translution
