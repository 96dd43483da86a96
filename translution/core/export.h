#pragma once

/// Marks what the shared libraries export; everything else is hidden.
#define TRANSLUTION_API __attribute__((visibility("default")))
