#pragma once

#include "translution/core/settings.h"
#include "translution/data/sources.h"
#include "translution/models/network.h"
#include "translution/train/options.h"

namespace translution {

/// What all processes that train together must agree on before the step after `steps_done`: names
/// and values of options, data and weights.
SettingTexts rank_facts(const TrainOptions& options, const DataSource& data, Network& network,
                        int64_t steps_done);

}  // namespace translution
