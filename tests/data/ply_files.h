#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace translution::testing {

/// A PLY file with these lines of its header behind "format", and this body.
inline std::string ply_bytes(const std::string& format, const std::string& header,
                             const std::string& body) {
  return "ply\nformat " + format + " 1.0\n" + header + "end_header\n" + body;
}

/// An ascii PLY file with x, y, z and the given properties of its vertices, one line each.
inline std::string ascii_ply(const std::vector<std::string>& vertices,
                             const std::string& properties = "") {
  std::string body;
  for (const auto& line : vertices) body += line + "\n";
  return ply_bytes("ascii",
                   "element vertex " + std::to_string(vertices.size()) +
                       "\nproperty float x\nproperty float y\nproperty float z\n" + properties,
                   body);
}

/// The bytes of a number in either order.
template <typename Number>
std::string number_bytes(Number number, bool big) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return big ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
}

}  // namespace translution::testing
