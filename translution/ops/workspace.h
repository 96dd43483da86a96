#pragma once

#include <cstdint>

namespace translution {

/// 512 MiB, or what TRANSLUTION_WORKSPACE says: bytes, or with a suffix K, M or G.
int64_t default_workspace();

/// Encodings of fewer channels are never kept for backward.
constexpr int64_t kWideChannels = 64;

}  // namespace translution
