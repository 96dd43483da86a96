#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "translution/nn/regrid.h"

namespace translution {

/// One tensor of a foreign model, and the tensors of ours that hold the same numbers. A model's
/// links are the whole mapping between the two: every function below works for any list of them.
/// All but constants move numbers without changing them, so that what goes there and back is the
/// same, and gradients map as weights do.
struct Link {
  std::string theirs;  ///< empty: a weight of ours that they do not have
  std::vector<int64_t> shape;
  std::string meaning;            ///< what decides the shape, for a message
  std::vector<std::string> ours;  ///< none: a constant of theirs
  std::function<std::vector<at::Tensor>(const at::Tensor&)> split;
  std::function<at::Tensor(const std::vector<at::Tensor>&)> join;
  at::Tensor value;  ///< what a constant of theirs holds, or what ours hold where they have none
};

using Links = std::vector<Link>;

/// The same numbers in the same order; `shape` may have sides of one that ours lacks.
Link same(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
          const std::string& ours, std::vector<int64_t> our_shape);
/// torch.nn.Linear's [sum of outs, in] for our matrices [in, out], one below the other.
Link stacked(const std::string& theirs, int64_t in, const std::vector<int64_t>& outs,
             const std::string& meaning, std::vector<std::string> ours);
/// The same numbers of ours side by side: [in, sum of widths], or [sum of widths] for vectors.
Link side_by_side(const std::string& theirs, std::vector<int64_t> shape,
                  const std::vector<int64_t>& widths, const std::string& meaning,
                  std::vector<std::string> ours);
/// A row per slot: row r of theirs is row `rows[r]` of ours.
Link reordered(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
               const std::string& ours, const std::vector<int64_t>& rows);
/// Any other rearrangement of one tensor of theirs into one of ours, with its way back.
Link rearranged(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
                const std::string& ours, std::function<at::Tensor(const at::Tensor&)> there,
                std::function<at::Tensor(const at::Tensor&)> back);
/// A tensor of theirs that follows from the model: compared when it is read, made when written.
Link constant(const std::string& theirs, const std::string& meaning, const at::Tensor& value);

/// A norm or a linear layer that both have alike: `.weight` of this shape, `.bias` of its first
/// side.
void add_pair(Links& links, const std::string& theirs, const std::string& ours,
              const std::vector<int64_t>& shape, const std::string& meaning);

/// Our tensors from theirs. `source` names the file in messages. Refuses a tensor that is missing,
/// unknown, of another shape, no floating-point numbers or of another type than the rest, and a
/// constant that differs: one line with the name, what was expected and what to do.
NamedTensors to_ours(const Links& links, const NamedTensors& theirs, const std::string& source);

/// Their tensors from ours, with the same refusals. Constants get the type of the weights.
NamedTensors to_theirs(const Links& links, const NamedTensors& ours, const std::string& source);

/// Without the prefix, where all names begin with it: "module." of a model trained on several
/// devices.
NamedTensors without_prefix(const NamedTensors& tensors, const std::string& prefix);

}  // namespace translution
