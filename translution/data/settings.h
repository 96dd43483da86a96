#pragma once

#include "translution/core/settings.h"
#include "translution/data/options.h"

namespace translution {

const std::vector<SettingGroup<DataOptions>>& data_settings();

}  // namespace translution
