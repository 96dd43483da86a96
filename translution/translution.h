#pragma once

/// libtranslution: attention layers and models whose weights depend on the offset between two
/// tokens.
#include "translution/core/pairs.h"
#include "translution/models/cost.h"
#include "translution/models/generate.h"
#include "translution/models/network.h"
#include "translution/models/warm_start.h"
#include "translution/nn/attention.h"
#include "translution/nn/block.h"
#include "translution/nn/regrid.h"
#include "translution/ops/methods.h"
#include "translution/ops/runtime.h"
#include "translution/weights/convert.h"
