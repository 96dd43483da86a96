#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "translution/data/point_cloud.h"

namespace translution {

enum class PlyFormat { ascii, little_endian, big_endian };
enum class PlyType { int8, uint8, int16, uint16, int32, uint32, float32, float64 };

/// A property of an element: one value, or a list of them with its length in front.
struct PlyProperty {
  std::string name;
  PlyType type = PlyType::float32;
  bool is_list = false;
  PlyType length = PlyType::uint8;  ///< of lists
};

struct PlyElement {
  std::string name;
  int64_t count = 0;
  std::vector<PlyProperty> properties;
};

/// What a PLY file declares.
struct PlyHeader {
  PlyFormat format = PlyFormat::ascii;
  std::vector<PlyElement> elements;  ///< in the order of the file; one of them is "vertex"
  size_t bytes = 0;                  ///< of the header
  int64_t lines = 0;

  const PlyElement& vertex() const;
  /// The vertices' properties besides x, y and z that are single values.
  std::vector<std::string> features() const;
};

/// At most this many bytes are searched for the end of a header.
inline constexpr int64_t kMaxPlyHeader = 1 << 16;

/// Parses the header of a PLY file from its first bytes. Throws std::runtime_error with the line
/// unless there are vertices with x, y and z. Messages begin with `name`.
PlyHeader parse_ply_header(std::string_view bytes, const std::string& name);

/// Parses a PLY file, ascii or binary: vertices with the named properties as features, or with one
/// feature of 1 if none is named. Values of type uchar are divided by 255, as in colours. Positions
/// are relative to the middle of the cloud's bounding box, computed in float64. Other elements and
/// lists are skipped. Throws std::runtime_error with the line or byte if the file is damaged, has
/// other bytes than declared, has no vertices or numbers that are not finite.
PointCloud parse_ply(std::string_view bytes, const std::string& name,
                     const std::vector<std::string>& features);

}  // namespace translution
