#pragma once

/// Marks a symbol that the shared libraries export; all others are hidden.
#define TRANSLUTION_API __attribute__((visibility("default")))
