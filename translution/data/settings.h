#pragma once

#include "translution/core/settings.h"
#include "translution/data/options.h"

namespace translution {

const Settings<DataOptions>& data_settings();

}  // namespace translution
