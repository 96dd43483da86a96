#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"

namespace translution {

/// Element types of safetensors that LibTorch has.
enum class SafetensorsType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

inline constexpr Named<SafetensorsType> kDtypes[] = {
    {SafetensorsType::f64, "F64", "double"},
    {SafetensorsType::f32, "F32", "float"},
    {SafetensorsType::f16, "F16", "IEEE half"},
    {SafetensorsType::bf16, "BF16", "upper half of a float"},
    {SafetensorsType::i64, "I64", "signed integer"},
    {SafetensorsType::i32, "I32", "signed integer"},
    {SafetensorsType::i16, "I16", "signed integer"},
    {SafetensorsType::i8, "I8", "signed integer"},
    {SafetensorsType::u8, "U8", "unsigned integer"},
    {SafetensorsType::boolean, "BOOL", "a byte, 0 or 1"},
};

TRANSLUTION_API int64_t byte_size(SafetensorsType dtype);  ///< of an element

struct SafetensorsEntry {
  std::string name;
  SafetensorsType dtype = SafetensorsType::f32;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  ///< bytes, counted from the end of the header
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of their bytes
  SafetensorsMetadata metadata;
};

/// A file starts with the length of the header in 8 bytes, then comes the header, then the tensors.
inline constexpr int64_t kLengthBytes = 8;

/// Of the header, without the 8 bytes, from the start of a file of that size; one line where the
/// file is too short for it, or it exceeds the 100 MB of the format.
TRANSLUTION_API int64_t safetensors_header_length(std::string_view start, int64_t file_size);

/// The header of a file of that size, from its start up to the tensors at least. Whatever breaks a
/// rule of the format is refused with one line, without a path: the tensors that come back fill the
/// rest of the file without a gap, and none overlaps another.
TRANSLUTION_API SafetensorsHeader parse_safetensors_header(std::string_view start,
                                                           int64_t file_size);

/// The start of a file up to the tensors, padded with spaces so that they begin at a multiple of 8.
TRANSLUTION_API std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace translution
