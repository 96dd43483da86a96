#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace translution::testing {

/// An IDX file of unsigned bytes whose header declares `sizes`; value i is i % modulo.
inline std::string idx_bytes(const std::vector<uint32_t>& sizes, size_t values, int modulo = 10) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes)
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 255);
  for (size_t i = 0; i < values; ++i) bytes += static_cast<char>(i % modulo);
  return bytes;
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// A temporary directory, removed in the destructor.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "data_tests.XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
  }
  void remove(const std::string& name) const { std::filesystem::remove(path + "/" + name); }

  std::string path;
};

/// MNIST's four files, with 30 training and 20 test images of the given size.
inline void write_split(const Directory& directory, uint32_t rows = 28, uint32_t cols = 28) {
  directory.write("train-images-idx3-ubyte", idx_bytes({30, rows, cols}, 30 * rows * cols, 251));
  directory.write("train-labels.idx1-ubyte", idx_bytes({30}, 30));
  directory.write("t10k-images.idx3-ubyte.gz",
                  gzip(idx_bytes({20, rows, cols}, 20 * rows * cols, 241)));
  directory.write("t10k-labels-idx1-ubyte.gz", gzip(idx_bytes({20}, 20)));
}

/// The message of the exception of type E that `call` throws.
template <typename E, typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an exception";
  return "";
}

}  // namespace translution::testing
