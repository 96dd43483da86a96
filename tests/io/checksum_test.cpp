#include "translution/io/checksum.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace translution::testing {
namespace {

TEST(Checksum, OfNoBytesIsXxh3s) { EXPECT_EQ(checksum_of(""), "99aa06d3014798d86001c324468d497f"); }

TEST(Checksum, DoesNotDependOnThePieces) {
  std::string bytes;
  for (int i = 0; i < 3'000'001; ++i) bytes += static_cast<char>(i * i >> 3);
  const TempDir dir;
  put_bytes(dir / "file", bytes);
  Checksum sum;
  for (size_t at = 0, length = 1; at < bytes.size(); at += length++)
    sum.add(std::string_view(bytes).substr(at, length));
  EXPECT_EQ(sum.hex(), checksum_of(bytes));
  EXPECT_EQ(checksum_of_file(dir / "file"), checksum_of(bytes));
  bytes[2'000'000] ^= 1;
  EXPECT_NE(sum.hex(), checksum_of(bytes));
}

}  // namespace
}  // namespace translution::testing
