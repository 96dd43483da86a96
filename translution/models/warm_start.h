#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/models/network.h"
#include "translution/nn/regrid.h"

namespace translution {

/// Where the first values of a parameter come from if a network starts from the weights of another
/// model, the old one.
enum class Start {
  taken,     ///< the old model's values
  moved,     ///< the old model's rows, moved to another grid (nn/regrid.h)
  repeated,  ///< the matrix that all offsets of the old model share, once per offset
  zero,      ///< zero: a new term that adds nothing at first, but has a gradient
  anew,      ///< initialised as usual
  unused,    ///< a tensor of the old model that the network does not take
};

inline constexpr Named<Start> kStarts[] = {
    {Start::taken, "taken", "taken"},
    {Start::moved, "moved", "moved to the grid"},
    {Start::repeated, "repeated", "repeated per offset"},
    {Start::zero, "zero", "zero at first"},
    {Start::anew, "anew", "new"},
    {Start::unused, "unused", "not taken"},
};

/// How a network starts from the weights of another model.
struct WarmStart {
  struct Tensor {
    std::string name;
    int64_t count;  ///< of elements
    Start start;
  };
  std::vector<Tensor> tensors;       ///< all parameters of the network, then the unused tensors
  std::vector<std::string> changes;  ///< options that change what the same weights compute
  bool same_outputs = true;          ///< the network computes what the old model computes
};

/// Decides how a model starts from the weights of the model `saved`. The two may differ in method,
/// classes, grid and layout. A parameter is taken if the old model has one of the same name and
/// shape. Otherwise:
///   rows per offset or position are moved to the new grid;
///   a shared matrix is repeated where the method has a matrix per offset;
///   biases, vectors per offset, a position embedding and the relative parts of alpha_translution
///   that the old model lacks start at zero. Of a relative part, only the tables of the queries (or
///   keys) and of the values are zero, so that they have a gradient;
///   everything else starts anew, and so does the head unless `take_head`.
/// Thus self_attention continues as translution, alpha_translution, relative_bias, relative_key or
/// relative_value with the same outputs. Throws if family, architecture, patch size, channels or
/// vocabulary differ; the message begins with `source`.
TRANSLUTION_API WarmStart plan_warm_start(const ModelOptions& saved, const ModelOptions& model,
                                          const std::string& source, bool take_head = true);

/// The same, and sets the parameters of the network, which must have been initialised. `tensors`
/// are the weights of the model `saved`.
TRANSLUTION_API WarmStart start_from(Network& network, const ModelOptions& saved,
                                     const NamedTensors& tensors, const std::string& source,
                                     bool take_head = true);

}  // namespace translution
