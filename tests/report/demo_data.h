#pragma once

#include "translution/report/report.h"

namespace translution {

/// Three synthetic runs with everything that a report can show: 2,000 training steps, ten classes,
/// 24 images of 84x84, attention over 7x7 patches, norms over 13x13 offsets.
ReportData demo_report();

}  // namespace translution
