#pragma once

#include <cstdint>
#include <string>

#include "translution/core/export.h"
#include "translution/core/settings.h"
#include "translution/core/slot_part.h"
#include "translution/models/options.h"

namespace translution {

/// How processes share a training. Groups of `offset` ranks with consecutive numbers take the same
/// samples, and each of these ranks owns some slots of every table with a matrix per slot. `data`
/// such groups share a batch.
struct TRANSLUTION_API Parallel {
  int64_t data = 0;  ///< 0: as many as there are processes for
  int64_t offset = 1;

  /// "data=2,offset=4"; empty for the default.
  std::string text() const;
  /// The same with `data` set. Throws unless a world of this size has these ranks.
  Parallel of(int64_t processes) const;
  /// What a rank owns of a model. Its group is empty without offset-parallel training.
  SlotShare share(int64_t rank) const;
  /// Throws if there are more ranks than slots to own in a layer, or if the model has points.
  void check(const ModelOptions& model) const;
};

/// The model of which each rank owns a share.
TRANSLUTION_API ModelOptions whole(ModelOptions model);

/// "data=D,offset=P", or one of the two.
TRANSLUTION_API Parallel parse_parallel(const SettingValue& value);

}  // namespace translution
