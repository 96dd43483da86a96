#include "translution/data/gunzip.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

constexpr size_t kMaxAtOnce = std::numeric_limits<uInt>::max();  // limit of zlib's counters

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

Gunzip::Gunzip(std::string_view bytes, std::string name) : name_(std::move(name)), left_(bytes) {
  constexpr int kGzipWindow = 15 + 16;  // 15: largest window; 16: gzip's header and checksum only
  ensure(inflateInit2(&stream_, kGzipWindow) == Z_OK, name_, ": cannot initialise zlib");
}

Gunzip::~Gunzip() { inflateEnd(&stream_); }

void Gunzip::feed() {
  if (stream_.avail_in > 0) return;
  const size_t count = std::min(left_.size(), kMaxAtOnce);
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left_.data()));
  stream_.avail_in = static_cast<uInt>(count);
  left_.remove_prefix(count);
}

size_t Gunzip::read(uint8_t* to, size_t count) {
  size_t done = 0;
  while (done < count && !ended_) {
    feed();
    const size_t amount = std::min(count - done, kMaxAtOnce);
    stream_.next_out = to + done;
    stream_.avail_out = static_cast<uInt>(amount);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    done += amount - stream_.avail_out;
    ended_ = result == Z_STREAM_END;
    const bool starved = result == Z_BUF_ERROR;
    ensure(!starved, name_, ": the gzip data is truncated; download the file again");
    ensure(ended_ || result == Z_OK, name_, ": the gzip data is damaged (",
           stream_.msg != nullptr ? stream_.msg : "checksum", "); download the file again");
  }
  return done;
}

bool Gunzip::at_end() {
  uint8_t more;
  if (read(&more, 1) > 0) return false;
  ensure(stream_.avail_in == 0 && left_.empty(), name_, ": has ", stream_.avail_in + left_.size(),
         " bytes after the end of the gzip data");
  return true;
}

}  // namespace translution
