#include "translution/io/checksum.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <new>

#include "translution/io/file.h"

namespace translution {

Checksum::Checksum() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_);
}

Checksum::~Checksum() { XXH3_freeState(state_); }

void Checksum::add(std::string_view bytes) {
  XXH3_128bits_update(state_, bytes.data(), bytes.size());
}

std::string Checksum::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_);
  char text[kDigits + 1];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

uint64_t Checksum::bits() const { return XXH3_128bits_digest(state_).low64; }

std::string checksum_of(std::string_view bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.hex();
}

std::string checksum_of_file(const std::string& path) {
  InputFile file(path);
  Checksum sum;
  std::string piece;
  for (int64_t left = file.size(); left > 0; left -= piece.size()) {
    piece.resize(std::min<int64_t>(left, 1 << 20));
    file.read(piece.data(), piece.size());
    sum.add(piece);
  }
  return sum.hex();
}

}  // namespace translution
