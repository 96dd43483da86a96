#pragma once

#include "translution/core/export.h"
#include "translution/core/settings.h"
#include "translution/data/options.h"

namespace translution {

TRANSLUTION_API const Settings<DataOptions>& data_settings();

}  // namespace translution
