#pragma once

#include "translution/core/settings.h"
#include "translution/data/sources.h"

namespace translution {

const std::vector<SettingGroup<DataOptions>>& data_settings();

}  // namespace translution
